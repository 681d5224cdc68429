#include "proof/check.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "plan/cell_map.hpp"
#include "proof/describe.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::CellMap;
using plan::CellRun;
using plan::CellRuns;
using plan::Plan;
using plan::Problem;
using plan::Range;
using plan::Step;
using plan::StepKind;

namespace {

constexpr std::uint32_t nobody = UINT32_MAX;

/// What a step must be, taken for itself.
class StepRules {
 public:
  explicit StepRules(const Plan& plan)
      : plan_(plan),
        vector_(plan.shape.vector_blocks()),
        blocks_{plan.blocks(Buffer::in), plan.blocks(Buffer::out), plan.blocks(Buffer::scratch)} {}

  [[nodiscard]] Status check(std::uint32_t number) const;

 private:
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
};

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
  return peer == plan_.rank ? wrong(number, "a rank sends nothing to itself") : Status();
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

/// Who touched each cell, and whether later steps wait for them.
class Races {
 public:
  explicit Races(const Plan& plan)
      : plan_(plan),
        cells_(plan.problem, plan.shape, plan.rank, can_be_in_place(plan.problem)),
        reached_by_(plan.steps.size(), nobody),
        touched_(cells_.count(plan.scratch_copies)) {}

  /// Of the steps in their order.
  Status check(std::uint32_t number);

 private:
  struct Touched {
    std::uint32_t writer = nobody;
    std::uint32_t reader = nobody;   // the last one since then
    std::uint32_t earlier = nobody;  // readers since then, but for the last: a place in readers_
  };
  struct Reader {
    std::uint32_t step;
    std::uint32_t earlier;
  };

  [[nodiscard]] static bool is_shifted(const CellRuns& source, const CellRuns& target) noexcept;
  // Each gives a step that touched one of the cells before and that this one does not wait for.
  [[nodiscard]] std::uint32_t read(CellRun run);
  [[nodiscard]] std::uint32_t write(CellRun run);
  [[nodiscard]] Status race_with(std::uint32_t other) const;

  void begin(std::uint32_t number, std::span<const std::uint32_t> awaited);
  [[nodiscard]] bool waits(std::uint32_t earlier) {
    return earlier == step_ || reached_by_[earlier] == step_ || waits_through_others(earlier);
  }
  [[nodiscard]] bool waits_through_others(std::uint32_t earlier);
  void reach(std::span<const std::uint32_t> steps);

  const Plan& plan_;
  CellMap cells_;
  std::uint32_t step_ = nobody;            // the one that all questions are about
  bool is_search_begun_ = false;           // for those that it waits for through others
  std::vector<std::uint32_t> reached_by_;  // by step: the last that was found to wait for it
  std::vector<std::uint32_t> reached_;     // those that this one waits for; a heap
  std::vector<Reader> readers_;
  std::vector<Touched> touched_;
};

Status Races::check(std::uint32_t number) {
  const Step& step = plan_.steps[number];
  begin(number, plan_.awaited(step));
  std::uint32_t other = nobody;
  if (step.count == 1) {  // as in most steps
    const std::uint32_t from = cells_.first(step.source());
    const std::uint32_t to = cells_.first(step.target());
    if (step.has_source()) other = read({from, from + 1});
    if (step.has_target() && other == nobody) other = write({to, to + 1});
    return other == nobody ? Status() : race_with(other);
  }
  const CellRuns source = step.has_source() ? cells_.of(step.source()) : CellRuns();
  const CellRuns target = step.has_target() ? cells_.of(step.target()) : CellRuns();
  if (step.has_source() && step.has_target() && is_shifted(source, target)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{}: it writes a part of what it reads, at another place",
                              locate(plan_, number)));
  }
  for (const CellRun& run : source) {
    if (other == nobody) other = read(run);
  }
  for (const CellRun& run : target) {
    if (other == nobody) other = write(run);
  }
  return other == nobody ? Status() : race_with(other);
}

bool Races::is_shifted(const CellRuns& source, const CellRuns& target) noexcept {
  if (source[0] == target[0]) return false;
  for (const CellRun& from : source) {
    for (const CellRun& to : target) {
      if (from.begin < to.end && to.begin < from.end) return true;
    }
  }
  return false;
}

std::uint32_t Races::read(CellRun run) {
  std::uint32_t awaited = nobody;  // known to be
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    Touched& cell = touched_[i];
    if (cell.writer != awaited && cell.writer != nobody) {
      if (!waits(cell.writer)) return cell.writer;
      awaited = cell.writer;
    }
    if (cell.reader != nobody) {
      readers_.push_back({cell.reader, cell.earlier});
      cell.earlier = static_cast<std::uint32_t>(readers_.size() - 1);
    }
    cell.reader = step_;
  }
  return nobody;
}

std::uint32_t Races::write(CellRun run) {
  std::uint32_t awaited = nobody;  // known to be
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    Touched& cell = touched_[i];
    // Those that read it since then are known to wait for who wrote it.
    const std::uint32_t last = cell.reader == nobody ? cell.writer : cell.reader;
    if (last != awaited && last != nobody) {
      if (!waits(last)) return last;
      awaited = last;
    }
    for (std::uint32_t each = cell.earlier; each != nobody; each = readers_[each].earlier) {
      if (!waits(readers_[each].step)) return readers_[each].step;
    }
    cell = {.writer = step_};
  }
  return nobody;
}

Status Races::race_with(std::uint32_t other) const {
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: it touches what step {} ({}) does, and does not wait for it",
                            locate(plan_, step_), other, describe(plan_.steps[other])));
}

void Races::begin(std::uint32_t number, std::span<const std::uint32_t> awaited) {
  step_ = number;
  is_search_begun_ = false;
  for (const std::uint32_t each : awaited) reached_by_[each] = number;
}

/// Goes back no farther than it must, and from there for the next question.
bool Races::waits_through_others(std::uint32_t earlier) {
  if (!std::exchange(is_search_begun_, true)) {
    const std::span<const std::uint32_t> awaited = plan_.awaited(plan_.steps[step_]);
    reached_.assign(awaited.begin(), awaited.end());
    std::ranges::make_heap(reached_);
  }
  while (reached_by_[earlier] != step_ && !reached_.empty() && reached_.front() > earlier) {
    std::ranges::pop_heap(reached_);
    const std::uint32_t step = reached_.back();
    reached_.pop_back();
    reach(plan_.awaited(plan_.steps[step]));
  }
  return reached_by_[earlier] == step_;
}

void Races::reach(std::span<const std::uint32_t> steps) {
  for (const std::uint32_t each : steps) {
    if (std::exchange(reached_by_[each], step_) == step_) continue;
    reached_.push_back(each);
    std::ranges::push_heap(reached_);
  }
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
      plan.steps.size() < nobody && plan.after.size() < nobody;
  if (is_sound) return {};
  return Status(
      StatusCode::invalid_argument,
      fmt::format("a plan that can't be: for rank {} of {}, root {}, {} contributions, {} chunks "
                  "of {} blocks, {} copies of them in scratch, {} steps",
                  plan.rank, problem.size, problem.root, problem.contributions, plan.shape.chunks,
                  plan.shape.blocks_per_chunk, plan.scratch_copies, plan.steps.size()));
}

Status check_plan(const Plan& plan) {
  if (Status status = check_extent(plan); !status.ok()) return status;
  const StepRules rules(plan);
  Races races(plan);
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (Status status = rules.check(i); !status.ok()) return status;
    if (Status status = races.check(i); !status.ok()) return status;
  }
  return {};
}

}  // namespace hocket::proof
