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
  if (reduces(plans.front().problem.operation)) add_up();
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
  // What comes in, and what is here already and goes into the target with it.
  const Range incoming = plans_[event.step.rank].steps[event.step.step].source();
  const Range own = step.kind == StepKind::recv_reduce ? step.source() : step.target();
  if (!is_readable(there, incoming)) return wrong_read(event.step, incoming);
  if (step.combines() && !is_readable(here, own)) return wrong_read(at, own);

  if (step.count == 1) {
    write({there.first + there.cells.first(incoming), here.first + here.cells.first(own),
           here.first + here.cells.first(step.target())},
          1, step);
    return {};
  }
  const Walk source(there.cells, incoming, there.first);
  const Walk operand(here.cells, own, here.first);
  const Walk target(here.cells, step.target(), here.first);
  for (std::uint32_t i = 0, count = 0; i < step.count; i += count) {
    count = std::min({source.in_row(i, step.count), operand.in_row(i, step.count),
                      target.in_row(i, step.count)});
    write({source.block(i), operand.block(i), target.block(i)}, count, step);
  }
  return {};
}

void Values::write(const Places& places, std::uint32_t count, const Step& step) {
  const bool combines = step.combines();
  const bool is_noted = in_place_ && step.to_buffer == Buffer::out;
  Block* const blocks = blocks_.data();
  for (std::uint32_t i = 0; i < count; ++i) {
    Block value = blocks[places.incoming + i];
    if (combines) value = combine(blocks[places.own + i], value);
    if (is_noted && blocks[places.target + i] != value) is_out_[places.target + i] = 1;
    blocks[places.target + i] = value;
  }
}

bool Values::is_readable(const Memory& memory, const Range& range) const {
  const bool may_be_out = in_place_ && range.buffer == Buffer::in;
  for (const plan::CellRun run : memory.cells.of(range)) {
    for (std::size_t i = memory.first + run.begin; i < memory.first + run.end; ++i) {
      if (!blocks_[i].is_defined() || (may_be_out && is_out_[i] != 0)) return false;
    }
  }
  return true;
}

Status Values::wrong_read(const StepId& id, const Range& range) const {
  const auto& [cells, first] = memory_[id.rank];
  const Walk walk(cells, range, first);
  std::uint32_t i = 0;
  while (blocks_[walk.block(i)].is_defined() &&
         (!in_place_ || range.buffer != Buffer::in || is_out_[walk.block(i)] == 0)) {
    ++i;
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: block {} of {} blocks of {} {}", locate(plans_[id.rank], id.step),
                            i, range.count, name(range.buffer),
                            blocks_[walk.block(i)].is_defined()
                                ? "was changed as out, which may be the same memory"
                                : "is undefined here"));
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
  const bool is_reduced = reduces(plans_.front().problem.operation);
  if (value.sum != wanted.sum || value.count() != wanted.count() ||
      (!is_reduced && value.tree() != wanted.tree())) {
    return wrong(is_reduced ? "not every rank's contribution is in it exactly once"
                            : "it holds what belongs elsewhere");
  }
  const bool is_everywhere = plans_.front().problem.operation == Operation::all_reduce;
  if (is_everywhere &&
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
