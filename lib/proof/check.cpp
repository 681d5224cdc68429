#include "proof/check.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "plan/cells.hpp"
#include "plan/describe.hpp"

namespace hocket::plan {
namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

Status wrong(const Plan& plan, std::uint32_t step, std::string_view why) {
  return Status(StatusCode::invalid_argument, fmt::format("{}: {}", locate(plan, step), why));
}

bool is_inside(const Plan& plan, const Range& range) {
  const std::uint32_t blocks = plan.blocks(range.buffer);
  return range.first < blocks && range.count >= 1 &&
         range.count <= std::min(blocks, plan.shape.vector_blocks());
}

Status outside(const Plan& plan, std::uint32_t step, const Range& range) {
  return wrong(plan, step,
               fmt::format("{} is outside of {}, which has {} blocks here", describe(range),
                           name(range.buffer), plan.blocks(range.buffer)));
}

Status check_step(const Plan& plan, std::uint32_t number) {
  const Step& step = plan.steps[number];
  if (step.kind > StepKind::reduce || step.from_buffer > Buffer::scratch ||
      step.to_buffer > Buffer::scratch) {
    return wrong(plan, number, "it is of no known kind");
  }
  if (step.has_source() && !is_inside(plan, step.source())) {
    return outside(plan, number, step.source());
  }
  if (step.has_target() && !is_inside(plan, step.target())) {
    return outside(plan, number, step.target());
  }
  if (step.has_source() && step.has_target() && !have_same_sizes(plan.shape, step.from, step.to)) {
    return wrong(plan, number, "its blocks are of other sizes than those they go to");
  }
  if (step.has_target() && step.to_buffer == Buffer::in) {
    return wrong(plan, number, "`in` is the caller's and never written");
  }
  if (step.sends() || step.receives()) {
    const std::uint32_t size = plan.problem.size;
    if (step.peer >= size) return wrong(plan, number, fmt::format("there are {} ranks", size));
    if (step.peer == plan.rank) return wrong(plan, number, "a rank sends nothing to itself");
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

/// Who touched each cell, and whether later steps wait for them.
class Races {
 public:
  explicit Races(const Plan& plan)
      : plan_(plan),
        cells_(plan.problem, plan.shape, plan.rank, can_be_in_place(plan.problem)),
        reached_by_(plan.steps.size(), nobody),
        touched_(cells_.count(plan.scratch_copies)) {}

  Status check(std::uint32_t number) {
    const Step& step = plan_.steps[number];
    Status status;
    if (step.has_source() && step.has_target() && is_shifted(step)) {
      return wrong(plan_, number, "it writes a part of what it reads, at another place");
    }
    if (step.has_source()) status = visit(step.source(), number, false);
    if (step.has_target() && status.ok()) status = visit(step.target(), number, true);
    return status;
  }

 private:
  struct Cell {
    std::uint32_t writer = nobody;
    std::uint32_t readers = nobody;  // the last of them since then, a place in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t earlier;
  };

  [[nodiscard]] bool is_shifted(const Step& step) const {
    const auto source = cells_.of(step.source());
    const auto target = cells_.of(step.target());
    const bool is_same = source[0].begin == target[0].begin && source[0].end == target[0].end;
    if (is_same) return false;
    for (const Cells::Run& from : source) {
      for (const Cells::Run& to : target) {
        if (from.begin < to.end && to.begin < from.end) return true;
      }
    }
    return false;
  }

  Status visit(const Range& range, std::uint32_t number, bool writes) {
    for (const Cells::Run run : cells_.of(range)) {
      for (std::uint32_t i = run.begin; i < run.end; ++i) {
        const std::uint32_t other = touch(touched_[i], number, writes);
        if (other == nobody) continue;
        return wrong(plan_, number,
                     fmt::format("it touches what step {} ({}) does, and does not wait for it",
                                 other, describe(plan_.steps[other])));
      }
    }
    return {};
  }

  /// A step that touched the cell before and for which this one does not wait.
  std::uint32_t touch(Cell& cell, std::uint32_t number, bool writes) {
    // Those that read it since then are known to wait for who wrote it.
    const bool is_read = writes && cell.readers != nobody;
    if (!is_read && cell.writer != nobody && !waits(number, cell.writer)) return cell.writer;
    if (!writes) {
      readers_.push_back({number, cell.readers});
      cell.readers = static_cast<std::uint32_t>(readers_.size() - 1);
      return nobody;
    }
    for (std::uint32_t each = cell.readers; each != nobody; each = readers_[each].earlier) {
      const std::uint32_t reader = readers_[each].step;
      if (reader != number && !waits(number, reader)) return reader;
    }
    cell = {.writer = number};
    return nobody;
  }

  /// Whether `later` waits for `earlier`, or for one that does. Goes back no farther than it must,
  /// and from there for the next question about the same step.
  bool waits(std::uint32_t later, std::uint32_t earlier) {
    if (std::exchange(later_, later) != later) {
      reached_.clear();
      reach_from(later);
    }
    while (reached_by_[earlier] != later && !reached_.empty() && reached_.front() > earlier) {
      std::ranges::pop_heap(reached_);
      const std::uint32_t step = reached_.back();
      reached_.pop_back();
      reach_from(step);
    }
    return later == earlier || reached_by_[earlier] == later;
  }

  void reach_from(std::uint32_t step) {
    for (const std::uint32_t before : plan_.before(plan_.steps[step])) {
      if (std::exchange(reached_by_[before], later_) == later_) continue;
      reached_.push_back(before);
      std::ranges::push_heap(reached_);
    }
  }

  const Plan& plan_;
  Cells cells_;
  std::uint32_t later_ = nobody;           // the step that the questions are about
  std::vector<std::uint32_t> reached_by_;  // by step: the last that was found to wait for it
  std::vector<std::uint32_t> reached_;     // those that this one waits for; a heap
  std::vector<Reader> readers_;
  std::vector<Cell> touched_;
};

/// In 64 bits, before anything is computed from it in 32.
bool has_sound_shape(const Plan& plan) {
  const std::uint64_t vector =
      std::uint64_t{plan.shape.chunks} * std::uint64_t{plan.shape.blocks_per_chunk};
  const std::uint64_t vectors =
      std::uint64_t{contributions_of(plan.problem, plan.rank).count()} + 1 + plan.scratch_copies;
  return plan.shape.blocks_per_chunk > 0 && vector <= limits::plan_blocks_max &&
         plan.shape == shape_of(plan.problem, plan.shape.blocks_per_chunk) &&
         vectors * vector <= limits::plan_blocks_max;
}

/// At least one of each rank, where something is made of them.
bool has_sound_contributions(const Problem& problem) {
  return problem.contributions == 0 ||
         (problem.operation == Operation::all_reduce && problem.contributions >= problem.size);
}

Status check_extent(const Plan& plan) {
  const Problem& problem = plan.problem;
  const bool is_sound = static_cast<std::size_t>(problem.operation) < all_operations().size() &&
                        problem.size >= 1 && problem.size <= limits::world_size_max &&
                        plan.rank < problem.size && problem.root < problem.size &&
                        has_sound_contributions(problem) && has_sound_shape(plan) &&
                        plan.steps.size() < nobody && plan.after.size() < nobody;
  if (is_sound) return {};
  return Status(
      StatusCode::invalid_argument,
      fmt::format("a plan that can't be: for rank {} of {}, root {}, {} contributions, {} chunks "
                  "of {} blocks, {} copies of them in scratch, {} steps",
                  plan.rank, problem.size, problem.root, problem.contributions, plan.shape.chunks,
                  plan.shape.blocks_per_chunk, plan.scratch_copies, plan.steps.size()));
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
