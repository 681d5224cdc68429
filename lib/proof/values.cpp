#include "proof/values.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plan/describe.hpp"
#include "proof/check.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::CellMap;
using plan::CellRuns;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using plan::Range;
using plan::Step;
using plan::StepKind;

namespace {

constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// What mix() takes one after the other is to be far apart; and small seeds would otherwise be what
/// a rank is, and what is contributed there nothing.
constexpr std::uint64_t far_apart = 0x9e3779b97f4a7c15;

/// The cells of a range, row by row.
class Walk {
 public:
  Walk(const CellMap& cells, const Range& range, std::size_t first) noexcept
      : runs_(cells.of(range)), first_(first) {}

  [[nodiscard]] std::size_t block(std::uint32_t i) const noexcept {
    const std::uint32_t before = runs_[0].size();
    return first_ + (i < before ? runs_[0].begin + i : runs_[1].begin + (i - before));
  }
  /// How many are in a row there, of so many in all.
  [[nodiscard]] std::uint32_t in_row(std::uint32_t i, std::uint32_t count) const noexcept {
    return (i < runs_[0].size() ? runs_[0].size() : count) - i;
  }

 private:
  CellRuns runs_;
  std::size_t first_;
};

/// What is here already and goes into the target with what comes in.
Range own_of(const Step& step) noexcept {
  return step.kind == StepKind::recv_reduce ? step.source() : step.target();
}

}  // namespace

void Values::start(std::span<const Plan> plans, bool in_place, std::uint64_t seed) {
  plans_ = plans;
  in_place_ = in_place;
  memory_.clear();
  randoms_.clear();
  std::size_t blocks = 0;
  for (const Plan& plan : plans) {
    const CellMap cells(plan.problem, plan.shape, plan.rank, in_place);
    memory_.push_back({cells, blocks});
    randoms_.push_back(mix(mix(seed ^ far_apart) ^ mix(plan.rank + far_apart)));
    blocks += cells.count(plan.scratch_copies);
  }
  blocks_.assign(blocks, {});
  is_out_.assign(in_place ? blocks : 0, 0);
  fill_inputs();
  is_reduced_ = reduces(plans.front().problem.operation);
  is_everywhere_ = plans.front().problem.operation == Operation::all_reduce;
  if (is_reduced_) add_up();
}

Values::Block Values::contribution(std::uint32_t rank, std::uint32_t position) const noexcept {
  const std::uint64_t random = mix(randoms_[rank] + position * far_apart);
  return {random, 1, random};
}

/// The same whichever of the two is which: so is a reduction. But not the same in another tree.
Values::Block Values::combine(const Block& one, const Block& other) noexcept {
  return {one.sum + other.sum, std::min(one.count() + other.count(), Block::count_max),
          mix(one.tree() + other.tree())};
}

void Values::fill_inputs() {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const std::uint32_t blocks = plans_[rank].blocks(Buffer::in);
    if (blocks == 0) continue;
    const auto& [cells, first] = memory_[rank];
    const plan::CellRun run = cells.of({Buffer::in, 0, blocks})[0];
    for (std::uint32_t cell = run.begin; cell < run.end; ++cell) {
      blocks_[first + cell] = contribution(rank, cells.position(cell));
    }
  }
}

void Values::add_up() {
  sums_.assign(plans_.front().shape.vector_blocks(), 0);
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    for (std::uint32_t i = 0; i < sums_.size(); ++i) sums_[i] += contribution(rank, i).sum;
  }
}

Status Values::run(std::span<const Event> events) {
  for (const Event& event : events) {
    if (Status status = run(event); !status.ok()) return status;
  }
  return {};
}

Status Values::run(const Event& event) {
  const StepId& at = event.last();
  const Step& step = plans_[at.rank].steps[at.step];
  const Memory& here = memory_[at.rank];
  const Memory& there = memory_[event.step.rank];
  const Range incoming = plans_[event.step.rank].steps[event.step.step].source();
  const Range own = own_of(step);
  if (step.count == 1) {
    return run(event,
               {0, 1, there.first + there.cells.first(incoming), here.first + here.cells.first(own),
                here.first + here.cells.first(step.target())});
  }
  const Walk source(there.cells, incoming, there.first);
  const Walk operand(here.cells, own, here.first);
  const Walk target(here.cells, step.target(), here.first);
  for (std::uint32_t i = 0, count = 0; i < step.count; i += count) {
    count = std::min({source.in_row(i, step.count), operand.in_row(i, step.count),
                      target.in_row(i, step.count)});
    Status status = run(event, {i, count, source.block(i), operand.block(i), target.block(i)});
    if (!status.ok()) return status;
  }
  return {};
}

Status Values::run(const Event& event, const Stretch& stretch) {
  const StepId& at = event.last();
  const Step& step = plans_[at.rank].steps[at.step];
  const Step& first = plans_[event.step.rank].steps[event.step.step];
  if (!are_readable(stretch.incoming, stretch.count, first.from_buffer)) {
    return wrong_read(event.step, first.source(), stretch.begin);
  }
  if (step.combines() && !are_readable(stretch.own, stretch.count, own_of(step).buffer)) {
    return wrong_read(at, own_of(step), stretch.begin);
  }
  write(stretch, step.combines(), in_place_ && step.to_buffer == Buffer::out);
  return {};
}

bool Values::are_readable(std::size_t first, std::uint32_t count, Buffer buffer) const noexcept {
  const std::size_t end = first + count;
  for (std::size_t i = first; i < end; ++i) {
    if (!blocks_[i].is_defined()) return false;
  }
  if (!in_place_ || buffer != Buffer::in) return true;
  return std::none_of(&is_out_[first], &is_out_[first] + count,
                      [](std::uint8_t is_out) { return is_out != 0; });
}

/// Of those from `begin` on, one is not readable.
Status Values::wrong_read(const StepId& id, const Range& range, std::uint32_t begin) const {
  const auto& [cells, first] = memory_[id.rank];
  const Walk walk(cells, range, first);
  std::uint32_t i = begin;
  while (are_readable(walk.block(i), 1, range.buffer)) ++i;
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: block {} of {} blocks of {} {}", locate(plans_[id.rank], id.step),
                            i, range.count, name(range.buffer),
                            blocks_[walk.block(i)].is_defined()
                                ? "was changed as out, which may be the same memory"
                                : "is undefined here"));
}

void Values::write(const Stretch& stretch, bool combines, bool is_noted) {
  const Block* const incoming = &blocks_[stretch.incoming];
  const Block* const own = &blocks_[stretch.own];
  Block* const target = &blocks_[stretch.target];
  for (std::uint32_t i = 0; i < stretch.count; ++i) {
    const Block value = combines ? combine(own[i], incoming[i]) : incoming[i];
    if (is_noted && target[i] != value) is_out_[stretch.target + i] = 1;
    target[i] = value;
  }
}

Values::Block Values::expected(std::uint32_t rank, std::uint32_t position) const noexcept {
  const Problem& problem = plans_.front().problem;
  const std::uint32_t chunk = plans_.front().shape.blocks_per_chunk;
  switch (problem.operation) {
    case Operation::all_gather:
    case Operation::gather:
      return contribution(position / chunk, position);
    case Operation::broadcast:
    case Operation::scatter:
      return contribution(problem.root, position);
    case Operation::all_to_all:
      return contribution(position / chunk, rank * chunk + position % chunk);
    default:
      return {sums_[position], problem.size, 0};  // in any tree
  }
}

Status Values::check_block(std::uint32_t rank, std::uint32_t block) const {
  const auto& [cells, first] = memory_[rank];
  const std::uint32_t cell = cells.first({Buffer::out, block, 1});
  const std::uint32_t position = cells.position(cell);
  const Block& value = blocks_[first + cell];
  const Block wanted = expected(rank, position);
  const auto wrong = [&](std::string_view why) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("rank {}, out[{}]: {}", rank, block, why));
  };
  if (!value.is_defined()) return wrong("it is undefined at the end");
  if (value.sum != wanted.sum || value.count() != wanted.count() ||
      (!is_reduced_ && value.tree() != wanted.tree())) {
    return wrong(is_reduced_ ? "not every rank's contribution is in it exactly once"
                             : "it holds what belongs elsewhere");
  }
  if (is_everywhere_ &&
      value.tree() != blocks_[memory_[0].cells.first({Buffer::out, block, 1})].tree()) {
    return wrong("it was combined in another order than on rank 0, so that its bits may differ");
  }
  return {};
}

Status Values::check_results() const {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const std::uint32_t blocks = plans_[rank].blocks(Buffer::out);
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (Status status = check_block(rank, block); !status.ok()) return status;
    }
  }
  return {};
}

}  // namespace hocket::proof
