#include "proof/check.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "proof/describe.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::Plan;
using plan::Problem;
using plan::Range;
using plan::Step;
using plan::StepKind;

namespace {

/// What a step must be, taken for itself.
class StepRules {
 public:
  explicit StepRules(const Plan& plan)
      : plan_(plan),
        vector_(plan.shape.vector_blocks()),
        blocks_{plan.blocks(Buffer::in), plan.blocks(Buffer::out), plan.blocks(Buffer::scratch)},
        peers_(plan.problem.size) {}

  /// Whether the step keeps all of them.
  [[nodiscard]] bool allow(const Step& step, std::uint32_t number) const noexcept;
  /// Which one it does not keep.
  [[nodiscard]] Status check(std::uint32_t number) const;

 private:
  [[nodiscard]] bool allow_ranges(const Step& step) const noexcept;
  [[nodiscard]] bool allow_waits(const Step& step, std::uint32_t number) const noexcept;
  [[nodiscard]] std::uint32_t blocks(Buffer buffer) const noexcept {
    return blocks_[static_cast<std::size_t>(buffer)];
  }
  [[nodiscard]] bool is_inside(const Range& range) const noexcept {
    const std::uint32_t count_max = std::min(blocks(range.buffer), vector_);
    return range.first < blocks(range.buffer) && range.count >= 1 && range.count <= count_max;
  }
  [[nodiscard]] Status wrong(std::uint32_t number, std::string_view why) const;
  [[nodiscard]] Status outside(std::uint32_t number, const Range& range) const;
  [[nodiscard]] Status check_peer(std::uint32_t number) const;
  [[nodiscard]] Status check_waits(std::uint32_t number) const;

  const Plan& plan_;
  const std::uint32_t vector_;
  const std::array<std::uint32_t, 3> blocks_;  // of each buffer
  const std::uint32_t peers_;
};

inline bool StepRules::allow(const Step& step, std::uint32_t number) const noexcept {
  const bool is_known = step.kind <= StepKind::reduce && step.from_buffer <= Buffer::scratch &&
                        step.to_buffer <= Buffer::scratch;
  const bool has_peer = step.peer < peers_ && step.peer != plan_.rank;
  return is_known && (has_peer || !step.communicates()) && step.lane < limits::plan_lanes_max &&
         allow_ranges(step) && allow_waits(step, number);
}

inline bool StepRules::allow_ranges(const Step& step) const noexcept {
  if (step.has_source() && !is_inside(step.source())) return false;
  if (!step.has_target()) return true;
  if (!is_inside(step.target()) || step.to_buffer == Buffer::in) return false;
  return !step.has_source() ||
         plan::have_same_sizes(plan_.shape.blocks_per_chunk, step.from, step.to);
}

inline bool StepRules::allow_waits(const Step& step, std::uint32_t number) const noexcept {
  const bool is_whole = std::uint64_t{step.after_first} + step.after_count <= plan_.after.size();
  if (!is_whole) return false;
  bool are_earlier = true;
  for (const std::uint32_t each : plan_.awaited(step)) are_earlier &= each < number;
  return are_earlier;
}

Status StepRules::wrong(std::uint32_t number, std::string_view why) const {
  return Status(StatusCode::invalid_argument, fmt::format("{}: {}", locate(plan_, number), why));
}

Status StepRules::outside(std::uint32_t number, const Range& range) const {
  return wrong(number, fmt::format("{} is outside of {}, which has {} blocks here", describe(range),
                                   name(range.buffer), blocks(range.buffer)));
}

Status StepRules::check(std::uint32_t number) const {
  const Step& step = plan_.steps[number];
  if (step.kind > StepKind::reduce || step.from_buffer > Buffer::scratch ||
      step.to_buffer > Buffer::scratch) {
    return wrong(number, "it is of no known kind");
  }
  if (step.has_source() && !is_inside(step.source())) return outside(number, step.source());
  if (step.has_target() && !is_inside(step.target())) return outside(number, step.target());
  if (step.has_source() && step.has_target() &&
      !plan::have_same_sizes(plan_.shape.blocks_per_chunk, step.from, step.to)) {
    return wrong(number, "its blocks are of other sizes than those they go to");
  }
  if (step.has_target() && step.to_buffer == Buffer::in) {
    return wrong(number, "`in` is the caller's and never written");
  }
  if (step.sends() || step.receives()) {
    if (Status status = check_peer(number); !status.ok()) return status;
  }
  return check_waits(number);
}

Status StepRules::check_peer(std::uint32_t number) const {
  const std::uint32_t peer = plan_.steps[number].peer;
  const std::uint32_t size = plan_.problem.size;
  if (peer >= size) return wrong(number, fmt::format("there are {} ranks", size));
  if (peer == plan_.rank) return wrong(number, "a rank sends nothing to itself");
  return plan_.steps[number].lane < limits::plan_lanes_max
             ? Status()
             : wrong(number, fmt::format("there are {} lanes", limits::plan_lanes_max));
}

Status StepRules::check_waits(std::uint32_t number) const {
  const Step& step = plan_.steps[number];
  if (std::uint64_t{step.after_first} + step.after_count > plan_.after.size()) {
    return wrong(number, "the list of steps it waits for is cut off");
  }
  for (const std::uint32_t each : plan_.awaited(step)) {
    if (each < number) continue;
    return wrong(number, fmt::format("it waits for step {}, which is no earlier", each));
  }
  return {};
}

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
  return problem.contributions == 0 || (problem.operation == plan::Operation::all_reduce &&
                                        problem.contributions >= problem.size &&
                                        problem.contributions <= limits::contributions_max);
}

}  // namespace

Status check_extent(const Plan& plan) {
  const Problem& problem = plan.problem;
  const bool is_sound =
      static_cast<std::size_t>(problem.operation) < plan::all_operations().size() &&
      problem.size >= 1 && problem.size <= limits::world_size_max && plan.rank < problem.size &&
      problem.root < problem.size && has_sound_contributions(problem) && has_sound_shape(plan) &&
      plan.steps.size() < UINT32_MAX && plan.after.size() < UINT32_MAX;
  if (is_sound) return {};
  return Status(
      StatusCode::invalid_argument,
      fmt::format("a plan that can't be: for rank {} of {}, root {}, {} contributions, {} chunks "
                  "of {} blocks, {} copies of them in scratch, {} steps",
                  plan.rank, problem.size, problem.root, problem.contributions, plan.shape.chunks,
                  plan.shape.blocks_per_chunk, plan.scratch_copies, plan.steps.size()));
}

Status check_plan(const Plan& plan) {
  Races races;
  return check_plan(plan, races);
}

Status check_plan(const Plan& plan, Races& races) {
  if (Status status = check_extent(plan); !status.ok()) return status;
  const StepRules rules(plan);
  races.start(plan);
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (!rules.allow(plan.steps[i], i)) return rules.check(i);
    if (Status status = races.check(i); !status.ok()) return status;
  }
  return {};
}

}  // namespace hocket::proof
