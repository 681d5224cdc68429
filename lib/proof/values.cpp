#include "proof/values.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "plan/describe.hpp"
#include "proof/check.hpp"

namespace hocket::plan {
namespace {

constexpr std::uint64_t mix(std::uint64_t bits) noexcept {
  bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9;
  bits = (bits ^ (bits >> 27)) * 0x94d049bb133111eb;
  return bits ^ (bits >> 31);
}

/// Small seeds would else be what a rank and a position are, and what is contributed there nothing.
constexpr std::uint64_t far_from_places = 0x9e3779b97f4a7c15;

/// The cells of a range, one after the other.
class Walk {
 public:
  Walk(const Cells& cells, const Range& range) noexcept : runs_(cells.of(range)) {}

  [[nodiscard]] std::uint32_t operator[](std::uint32_t i) const noexcept {
    const std::uint32_t first = runs_[0].size();
    return i < first ? runs_[0].begin + i : runs_[1].begin + (i - first);
  }

 private:
  std::array<Cells::Run, 2> runs_;
};

Status wrong_read(const Plan& plan, std::uint32_t step, const Range& range, std::uint32_t i,
                  std::string_view why) {
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: block {} of {} blocks of {} {}", locate(plan, step), i,
                            range.count, name(range.buffer), why));
}

}  // namespace

Values::Values(std::span<const Plan> plans, bool in_place, std::uint64_t seed)
    : plans_(plans), seed_(mix(seed ^ far_from_places)) {
  memory_.reserve(plans.size());
  for (const Plan& plan : plans) {
    const Cells cells(plan.problem, plan.shape, plan.rank, in_place);
    memory_.push_back({cells, std::vector<Block>(cells.count(plan.scratch_copies)),
                       std::vector<bool>(cells.count(plan.scratch_copies))});
  }
  fill_inputs();
  if (reduces(plans.front().problem.operation)) combine_all();
}

Values::Block Values::contribution(std::uint32_t number, std::uint32_t position) const noexcept {
  const std::uint64_t random = mix(seed_ ^ mix((std::uint64_t{number} << 32) | position));
  return {random, mix(random) | 1, 1};
}

/// The same whichever of the two is which: so is a reduction. But not the same in another tree.
Values::Block Values::combine(const Block& one, const Block& other) noexcept {
  const std::uint64_t count = std::uint64_t{one.count} + other.count;
  return {one.sum + other.sum, mix(one.tree + other.tree) | 1,
          static_cast<std::uint32_t>(std::min<std::uint64_t>(count, UINT32_MAX))};
}

void Values::fill_inputs() {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const std::uint32_t blocks = plans_[rank].blocks(Buffer::in);
    if (blocks == 0) continue;
    Memory& memory = memory_[rank];
    const std::uint32_t number = contributions_of(plans_[rank].problem, rank).begin;
    const std::uint32_t vector = plans_[rank].shape.vector_blocks();
    const std::uint32_t first = memory.cells.of({Buffer::in, 0, 1})[0].begin;
    for (std::uint32_t i = 0; i < blocks; ++i) {
      memory.blocks[first + i] =
          contribution(number + i / vector, memory.cells.position(first + i));
    }
  }
}

/// In the canonical tree: neighbours become one, and the last one of an odd number stays what it
/// is, until there is one.
void Values::combine_all() {
  const std::uint32_t all = all_contributions(plans_.front().problem);
  std::vector<Block> row;
  for (std::uint32_t position = 0; position < plans_.front().shape.vector_blocks(); ++position) {
    row.clear();
    for (std::uint32_t i = 0; i < all; ++i) row.push_back(contribution(i, position));
    while (row.size() > 1) {
      for (std::size_t i = 0; i + 1 < row.size(); i += 2) row[i / 2] = combine(row[i], row[i + 1]);
      if (row.size() % 2 == 1) row[row.size() / 2] = row.back();
      row.resize((row.size() + 1) / 2);
    }
    results_.push_back(row.front());
  }
}

Status Values::check_read(StepId id, const Range& range, std::uint32_t cell,
                          std::uint32_t i) const {
  const Memory& memory = memory_[id.rank];
  const Plan& plan = plans_[id.rank];
  if (memory.blocks[cell].tree == 0)
    return wrong_read(plan, id.step, range, i, "is undefined here");
  if (range.buffer == Buffer::in && memory.is_out[cell]) {
    return wrong_read(plan, id.step, range, i, "was changed as out, which may be the same memory");
  }
  return {};
}

Status Values::run(const Event& event) {
  const StepId at = event.is_message ? event.receive : event.step;
  const Step& step = plans_[at.rank].steps[at.step];
  Memory& here = memory_[at.rank];
  const Walk target(here.cells, step.target());

  // Of what comes in, and of what is here already and goes into the target with it.
  const Memory& there = memory_[event.step.rank];
  const Range incoming = plans_[event.step.rank].steps[event.step.step].source();
  const Range own = step.kind == StepKind::recv_reduce ? step.source() : step.target();
  const Walk source(there.cells, incoming);
  const Walk operand(here.cells, own);

  for (std::uint32_t i = 0; i < step.count; ++i) {
    if (Status status = check_read(event.step, incoming, source[i], i); !status.ok()) return status;
    Block value = there.blocks[source[i]];
    if (step.combines()) {
      if (Status status = check_read(at, own, operand[i], i); !status.ok()) return status;
      value = combine(here.blocks[operand[i]], value);
    }
    Block& to = here.blocks[target[i]];
    if (step.to_buffer == Buffer::out && to != value) here.is_out[target[i]] = true;
    to = value;
  }
  return {};
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
      return results_[position];
  }
}

Status Values::check_block(std::uint32_t rank, std::uint32_t block) const {
  const Memory& memory = memory_[rank];
  const std::uint32_t cell = memory.cells.of({Buffer::out, block, 1})[0].begin;
  const std::uint32_t position = memory.cells.position(cell);
  const Block& value = memory.blocks[cell];
  const Block wanted = expected(rank, position);
  const auto wrong = [&](std::string_view why) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("rank {}, out[{}]: {}", rank, block, why));
  };
  if (value.tree == 0) return wrong("it is undefined at the end");
  const bool is_reduced = reduces(plans_.front().problem.operation);
  if (value.sum != wanted.sum || value.count != wanted.count ||
      (!is_reduced && value.tree != wanted.tree)) {
    return wrong(is_reduced ? "not every rank's contribution is in it exactly once"
                            : "it holds what belongs elsewhere");
  }
  const bool is_everywhere = plans_.front().problem.operation == Operation::all_reduce;
  if (is_everywhere &&
      value.tree != memory_[0].blocks[memory_[0].cells.of({Buffer::out, block, 1})[0].begin].tree) {
    return wrong("it was combined in another order than on rank 0, so that its bits may differ");
  }
  if (plans_.front().problem.contributions > 0 && value.tree != wanted.tree) {
    return wrong(
        "the tree in which it was combined is not the canonical tree, so that its bits may differ "
        "in worlds of other sizes");
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

bool Values::are_canonical() const {
  if (results_.empty()) return false;
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    for (std::uint32_t block = 0; block < plans_[rank].blocks(Buffer::out); ++block) {
      const Memory& memory = memory_[rank];
      const std::uint32_t cell = memory.cells.of({Buffer::out, block, 1})[0].begin;
      if (memory.blocks[cell].tree != results_[memory.cells.position(cell)].tree) return false;
    }
  }
  return true;
}

}  // namespace hocket::plan
