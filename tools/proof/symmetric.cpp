#include "proof/symmetric.hpp"

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "plan/cell_map.hpp"
#include "proof/check.hpp"
#include "proof/describe.hpp"
#include "proof/expressions.hpp"
#include "proof/symmetric_run.hpp"
#include "proof/uneven.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::CellMap;
using plan::CellRuns;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using plan::Range;
using plan::Rotation;
using plan::Step;
using plan::StepKind;
using plan::Symmetry;
using Value = Expressions::Value;

namespace {

/// What stands in the blocks of rank 0, and so in those of all others, while all take the same
/// steps at once.
class SymmetricValues {
 public:
  SymmetricValues(const Plan& plan, Symmetry symmetry, bool in_place);

  [[nodiscard]] Status run(const Event& event);
  [[nodiscard]] Status check_results();

 private:
  /// Blocks of a range as they are read or written, one after the other.
  struct Place {
    Buffer buffer;
    CellRuns runs;

    [[nodiscard]] std::uint32_t cell(std::uint32_t i) const noexcept {
      const std::uint32_t before = runs[0].size();
      return i < before ? runs[0].begin + i : runs[1].begin + (i - before);
    }
  };

  [[nodiscard]] Place place_of(const Range& range) const noexcept {
    return {range.buffer, cells_.of(range)};
  }
  /// All ranks have come to the steps that are the same on all.
  void join();
  [[nodiscard]] bool is_readable(const Place& place, std::uint32_t i) const noexcept;
  [[nodiscard]] Status wrong_read(std::uint32_t step, const Range& range, std::uint32_t i) const;
  void write(const Place& place, std::uint32_t i, Value value);
  [[nodiscard]] Status check_block(std::uint32_t block);
  [[nodiscard]] bool is_wanted(Value value, std::uint32_t block);

  const Plan& plan_;
  const bool is_in_place_;
  const bool is_reduced_;
  const std::uint32_t first_same_;
  CellMap cells_;
  Expressions expressions_;
  std::vector<Value> values_;             // by cell, in and out apart
  std::vector<std::uint8_t> is_changed_;  // by position: where in would be, if it were out
  std::vector<std::uint8_t> is_same_;     // by cell, behind the join: on all ranks what it is here
};

SymmetricValues::SymmetricValues(const Plan& plan, Symmetry symmetry, bool in_place)
    : plan_(plan),
      is_in_place_(in_place && can_be_in_place(plan.problem)),
      is_reduced_(reduces(plan.problem.operation)),
      first_same_(first_same(plan, symmetry)),
      cells_(plan.problem, plan.shape, 0, false),
      expressions_(plan.problem.size, plan.shape.vector_blocks()),
      values_(cells_.count(plan.scratch_copies)),
      is_changed_(plan.shape.vector_blocks()) {
  for (std::uint32_t i = 0; i < plan.blocks(Buffer::in); ++i) {
    values_[cells_.first({Buffer::in, i, 1})] = expressions_.contribution(0, i);
  }
}

/// What rank r has in a copy of the vector is what rank 0 has r copies before it, rotated: so that
/// all ranks have the same in one of them, those of rank 0 must all be rotations of each other.
/// Then that holds for every one.
void SymmetricValues::join() {
  const auto cell = [&](std::uint32_t copy) { return cells_.first({Buffer::scratch, copy, 1}); };
  bool are_same = true;
  for (std::uint32_t copy = 0; copy < plan_.scratch_copies; ++copy) {
    are_same &= values_[cell(copy)] == expressions_.turned(values_[cell(0)], copy);
  }
  is_same_.resize(values_.size());
  for (std::uint32_t copy = 0; copy < plan_.scratch_copies; ++copy) {
    is_same_[cell(copy)] = are_same ? 1 : 0;
  }
}

Status SymmetricValues::run(const Event& event) {
  if (event.step.step == first_same_) join();
  const Step& from = plan_.steps[event.step.step];
  const Step& to = plan_.steps[event.last().step];
  // What rank 0 gets is what it sends, seen from as far behind.
  const std::uint32_t size = plan_.problem.size;
  const std::uint32_t turn = event.is_message ? size - event.receive.rank : 0;
  const Range own_range = to.kind == StepKind::recv_reduce ? to.source() : to.target();
  const Place incoming = place_of(from.source());
  const Place own = place_of(own_range);
  const Place target = place_of(to.target());
  for (std::uint32_t i = 0; i < to.count; ++i) {
    if (!is_readable(incoming, i)) return wrong_read(event.step.step, from.source(), i);
    Value value = expressions_.turned(values_[incoming.cell(i)], turn);
    if (to.combines()) {
      if (!is_readable(own, i)) return wrong_read(event.last().step, own_range, i);
      value = expressions_.combine(values_[own.cell(i)], value);
    }
    write(target, i, value);
  }
  return {};
}

/// In place, nothing may read `in` where it was changed as out. Then all is read as if they were
/// apart, for out is read nowhere before it is written.
bool SymmetricValues::is_readable(const Place& place, std::uint32_t i) const noexcept {
  const std::uint32_t cell = place.cell(i);
  const bool may_be_out = is_in_place_ && place.buffer == Buffer::in;
  if (!is_same_.empty() && is_same_[cell] == 0) return false;
  return values_[cell].is_defined() && (!may_be_out || is_changed_[cells_.position(cell)] == 0);
}

void SymmetricValues::write(const Place& place, std::uint32_t i, Value value) {
  const std::uint32_t cell = place.cell(i);
  values_[cell] = value;
  if (!is_same_.empty()) is_same_[cell] = 1;
  if (place.buffer != Buffer::out) return;
  const std::uint32_t position = cells_.position(cell);
  if (value != expressions_.contribution(0, position)) is_changed_[position] = 1;
}

Status SymmetricValues::wrong_read(std::uint32_t step, const Range& range, std::uint32_t i) const {
  const std::uint32_t cell = place_of(range).cell(i);
  std::string_view why = "was changed as out, which may be the same memory";
  if (!is_same_.empty() && is_same_[cell] == 0) why = "is not the same on all ranks";
  if (!values_[cell].is_defined()) why = "is undefined here";
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: block {} of {} blocks of {} {}", locate(plan_, step), i,
                            range.count, name(range.buffer), why));
}

Status SymmetricValues::check_results() {
  for (std::uint32_t block = 0; block < plan_.blocks(Buffer::out); ++block) {
    if (Status status = check_block(block); !status.ok()) return status;
  }
  return {};
}

Status SymmetricValues::check_block(std::uint32_t block) {
  const Value value = values_[cells_.first({Buffer::out, block, 1})];
  const auto wrong = [&](std::string_view why) {
    return Status(StatusCode::invalid_argument, fmt::format("rank 0, out[{}]: {}", block, why));
  };
  if (!value.is_defined()) return wrong("it is undefined at the end");
  if (is_wanted(value, block)) return {};
  if (!is_reduced_) return wrong("it holds what belongs elsewhere");
  if (!expressions_.has_each_once(value, block)) {
    return wrong("not every rank's contribution is in it exactly once");
  }
  return wrong("it was combined in another order than on other ranks");
}

/// Each rank has at the place in question what rank 0 has at another one, rotated: all have the
/// same if what rank 0 has there is what it has here, rotated.
bool SymmetricValues::is_wanted(Value value, std::uint32_t block) {
  if (!is_same_.empty()) {
    const std::uint32_t cell = cells_.first({Buffer::out, block, 1});
    return is_same_[cell] != 0 && expressions_.has_each_once(value, block);
  }
  const std::uint32_t size = plan_.problem.size;
  const std::uint32_t each = plan_.shape.vector_blocks() / size;  // blocks of a rank
  switch (plan_.problem.operation) {
    case Operation::all_reduce: {
      const Value first = values_[cells_.first({Buffer::out, block % each, 1})];
      if (block >= each) return value == expressions_.turned(first, block / each);
      return expressions_.has_each_once(value, block);
    }
    case Operation::reduce_scatter:
      return expressions_.has_each_once(value, block);
    case Operation::all_gather:
      return value == expressions_.contribution(block / each, block);
    case Operation::all_to_all:
      return value == expressions_.contribution(block / each, block % each);
    default:
      return false;
  }
}

/// Whether something is the same on all ranks, and waits for all before it: the first step does,
/// and each other one for that or for one that does.
bool is_joined(const Plan& plan, std::uint32_t first_same) {
  if (first_same == plan.steps.size()) return false;
  const auto awaited = plan.awaited(plan.steps[first_same]);
  std::vector<std::uint32_t> all(awaited.begin(), awaited.end());
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  if (all.size() != first_same) return false;
  return std::ranges::all_of(std::span(plan.steps).subspan(first_same + 1), [&](const Step& step) {
    const auto steps = plan.awaited(step);
    return std::ranges::any_of(steps, [&](std::uint32_t each) { return each >= first_same; });
  });
}

/// Whether the other ranks' plans follow from this one, each block going where blocks of its size
/// are.
bool is_symmetric(const Plan& plan, Symmetry symmetry) {
  const std::uint32_t vector = plan.shape.vector_blocks();
  const std::uint32_t size = plan.problem.size;
  const Operation operation = plan.problem.operation;
  const bool is_known = operation == Operation::all_reduce ||
                        operation == Operation::reduce_scatter ||
                        operation == Operation::all_gather || operation == Operation::all_to_all;
  if (plan.rank != 0 || !is_known || plan.problem.contributions != 0) return false;
  switch (symmetry) {
    case Symmetry::none:
      return false;
    case Symmetry::rotated:
      return vector % size == 0;
    case Symmetry::rotated_but_scratch:
      return vector % size == 0 && vector / size % plan.shape.blocks_per_chunk == 0;
    case Symmetry::rotated_then_same:
      return plan.problem.operation == Operation::all_reduce && vector == 1 &&
             (size == 1 ||
              (plan.scratch_copies == size && is_joined(plan, first_same(plan, symmetry))));
  }
  return false;
}

Status check_symmetry(const Plan& plan, Symmetry symmetry) {
  if (is_symmetric(plan, symmetry)) return {};
  return Status(
      StatusCode::invalid_argument,
      fmt::format("the plan of rank {} of {}, of {} chunks of {} blocks, says nothing of "
                  "the others'",
                  plan.rank, plan.problem.size, plan.shape.chunks, plan.shape.blocks_per_chunk));
}

/// Whether what each step or message does is right where chunks differ in size.
class SymmetricUneven {
 public:
  SymmetricUneven(const Plan& plan, Symmetry symmetry)
      : plan_(plan),
        symmetry_(symmetry),
        // What stays in scratch where it is has another size on each rank.
        allows_(symmetry != Symmetry::rotated_but_scratch || plan.scratch_copies == 0) {
    uneven_.start(plan.problem, plan.shape);
  }

  void run(const Event& event) {
    const std::uint32_t rank = event.last().rank;
    const Rotation rotation(plan_.problem, plan_.shape, symmetry_, rank);
    allows_ = allows_ && uneven_.keeps_size(0, plan_.steps[event.step.step], rank,
                                            rotation.step(plan_.steps[event.last().step]));
  }
  [[nodiscard]] bool allows() const noexcept { return allows_; }

 private:
  const Plan& plan_;
  Symmetry symmetry_;
  Uneven uneven_;
  bool allows_;
};

}  // namespace

bool is_proved_by_one(const plan::Algorithm& algorithm, const VerifyOptions& options) noexcept {
  return algorithm.symmetry != Symmetry::none && algorithm.operation != Operation::barrier &&
         !options.canonical && !options.order;
}

Result<Proof> verify_symmetric(const Plan& plan, Symmetry symmetry, const VerifyOptions& options) {
  if (Status status = check_plan(plan); !status.ok()) return status;
  if (Status status = check_symmetry(plan, symmetry); !status.ok()) return status;
  SymmetricRun order(plan, symmetry);
  SymmetricValues values(plan, symmetry, options.in_place);
  SymmetricUneven uneven(plan, symmetry);
  Proof proof;
  while (const auto event = order.next()) {
    if (Status status = values.run(*event); !status.ok()) return status;
    if (options.uneven) uneven.run(*event);
    if (event->is_message) proof.blocks_sent += plan.steps[event->step.step].count;
  }
  if (!order.is_over()) return order.describe_stop();
  if (Status status = values.check_results(); !status.ok()) return status;
  proof.steps = plan.problem.size * plan.steps.size();
  proof.messages = plan.problem.size * order.messages();
  proof.rounds = order.rounds();
  proof.allows_uneven = options.uneven && uneven.allows();
  return proof;
}

}  // namespace hocket::proof
