#include "plan/check.hpp"

#include <array>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "plan/describe.hpp"

namespace hocket::plan {
namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

Status wrong(const Plan& plan, std::uint32_t step, std::string_view why) {
  return Status(StatusCode::invalid_argument, fmt::format("{}: {}", locate(plan, step), why));
}

std::string check_range(const Plan& plan, const Range& range) {
  const std::uint32_t blocks = plan.blocks(range.buffer);
  if (range.first < blocks && range.count >= 1 &&
      range.count <= std::min(blocks, plan.shape.vector_blocks())) {
    return {};
  }
  return fmt::format("{} is outside of {}, which has {} blocks here", describe(range),
                     name(range.buffer), blocks);
}

Status check_step(const Plan& plan, std::uint32_t number) {
  const Step& step = plan.steps[number];
  if (step.kind > StepKind::reduce || step.from_buffer > Buffer::scratch ||
      step.to_buffer > Buffer::scratch) {
    return wrong(plan, number, "it is of no known kind");
  }
  std::string why;
  if (step.has_source()) why = check_range(plan, step.source());
  if (step.has_target() && why.empty()) why = check_range(plan, step.target());
  if (!why.empty()) return wrong(plan, number, why);
  if (step.has_target() && step.to_buffer == Buffer::in) {
    return wrong(plan, number, "`in` is the caller's and never written");
  }
  if (step.sends() || step.receives()) {
    const auto size = static_cast<std::uint32_t>(plan.problem.size);
    const auto self = static_cast<std::uint32_t>(plan.rank);
    if (step.peer >= size) return wrong(plan, number, fmt::format("there are {} ranks", size));
    if (step.peer == self) return wrong(plan, number, "a rank sends nothing to itself");
  }
  if (std::uint64_t{step.after_first} + step.after_count > plan.after.size()) {
    return wrong(plan, number, "the list of steps it waits for is cut off");
  }
  for (const std::uint32_t before : plan.before(step)) {
    if (before >= number) {
      return wrong(plan, number, fmt::format("it waits for step {}, which is no earlier", before));
    }
  }
  return {};
}

/// Who touched each block, and whether later ones wait for them.
class Races {
 public:
  explicit Races(const Plan& plan)
      : plan_(plan), seen_(plan.steps.size(), nobody), vector_(plan.shape.vector_blocks()),
        apart_(can_be_in_place(plan.problem.operation) ? 0 : plan.shape.vector_blocks()),
        scratch_(plan.blocks(Buffer::scratch)) {}

  Status check(std::uint32_t number) {
    const Step& step = plan_.steps[number];
    Status status;
    if (step.has_source()) status = visit(step.source(), number, false);
    if (step.has_target() && status.ok()) status = visit(step.target(), number, true);
    return status;
  }

 private:
  struct Block {
    std::uint32_t writer = nobody;
    std::uint32_t readers = nobody;  // the last of them since then, a place in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t earlier;
  };

  Status visit(const Range& range, std::uint32_t number, bool writes) {
    const Parts parts = split(range, plan_.blocks(range.buffer), plan_.shape);
    for (const Range& part : {parts.first, parts.second}) {
      for (std::uint32_t i = 0; i < part.count; ++i) {
        const std::uint32_t other = touch(block(part.buffer, part.first + i), number, writes);
        if (other == nobody) continue;
        return wrong(plan_, number,
                     fmt::format("it touches {} and does not wait for step {} ({})",
                                 describe({part.buffer, part.first + i, 1}), other,
                                 describe(plan_.steps[other])));
      }
    }
    return {};
  }

  Block& block(Buffer buffer, std::uint32_t index) {
    if (buffer == Buffer::scratch) return scratch_[index];
    if (buffer == Buffer::out && !can_be_in_place(plan_.problem.operation)) return apart_[index];
    return vector_[place_in_vector(plan_.problem, plan_.shape, plan_.rank, buffer) + index];
  }

  /// A step that touched the block before and for which this one does not wait.
  std::uint32_t touch(Block& block, std::uint32_t number, bool writes) {
    if (block.writer != nobody && !waits(number, block.writer)) return block.writer;
    if (!writes) {
      readers_.push_back({number, block.readers});
      block.readers = static_cast<std::uint32_t>(readers_.size() - 1);
      return nobody;
    }
    for (std::uint32_t each = block.readers; each != nobody; each = readers_[each].earlier) {
      const std::uint32_t reader = readers_[each].step;
      if (reader != number && !waits(number, reader)) return reader;
    }
    block = {.writer = number};
    return nobody;
  }

  /// Whether `later` waits for `earlier`, or for one that does.
  bool waits(std::uint32_t later, std::uint32_t earlier) {
    open_.assign(1, later);
    while (!open_.empty()) {
      const std::uint32_t step = open_.back();
      open_.pop_back();
      for (const std::uint32_t before : plan_.before(plan_.steps[step])) {
        if (before == earlier) return true;
        const std::uint64_t search = (std::uint64_t{later} << 32) | earlier;
        if (before < earlier || seen_[before] == search) continue;
        seen_[before] = search;
        open_.push_back(before);
      }
    }
    return later == earlier;
  }

  const Plan& plan_;
  std::vector<std::uint64_t> seen_;  // by step: the last search that came by
  std::vector<std::uint32_t> open_;
  std::vector<Reader> readers_;
  std::vector<Block> vector_;
  std::vector<Block> apart_;
  std::vector<Block> scratch_;
};

Status check_extent(const Plan& plan) {
  const bool is_sound = plan.problem.size >= 1 && plan.problem.size <= limits::world_size_max &&
                        plan.rank >= 0 && plan.rank < plan.problem.size && plan.problem.root >= 0 &&
                        plan.problem.root < plan.problem.size &&
                        plan.shape.vector_blocks() <= limits::plan_blocks_max &&
                        plan.scratch_copies <= limits::plan_scratch_copies_max &&
                        plan.steps.size() < nobody;
  if (is_sound) return {};
  return Status(StatusCode::invalid_argument,
                fmt::format("a plan for rank {} of {}, root {}, with {} blocks and {} copies of them "
                            "in scratch",
                            plan.rank, plan.problem.size, plan.problem.root,
                            plan.shape.vector_blocks(), plan.scratch_copies));
}

}  // namespace

std::string locate(const Plan& plan, std::uint32_t step) {
  return fmt::format("rank {}, step {} ({})", plan.rank, step, describe(plan.steps[step]));
}

Status check_plan(const Plan& plan) {
  if (Status status = check_extent(plan); !status.ok()) return status;
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (Status status = check_step(plan, i); !status.ok()) return status;
  }
  Races races(plan);
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (Status status = races.check(i); !status.ok()) return status;
  }
  return {};
}

}  // namespace hocket::plan
