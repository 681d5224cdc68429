#include "proof/races.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "proof/describe.hpp"

namespace hocket::proof {

using plan::CellMap;
using plan::CellRun;
using plan::CellRuns;
using plan::Plan;
using plan::Step;

void Races::start(const Plan& plan) {
  plan_ = &plan;
  cells_ = CellMap(plan.problem, plan.shape, plan.rank, can_be_in_place(plan.problem));
  reached_by_.assign(plan.steps.size(), nobody);
  touched_.assign(cells_.count(plan.scratch_copies), {});
  readers_.clear();
  joint_ = nobody;
}

inline std::uint32_t Races::read(std::uint32_t at) {
  Touched& cell = touched_[at];
  if (cell.writer != nobody && !waits(cell.writer)) return cell.writer;
  if (cell.reader != nobody) {
    readers_.push_back({cell.reader, cell.earlier});
    cell.earlier = static_cast<std::uint32_t>(readers_.size() - 1);
  }
  cell.reader = step_;
  return nobody;
}

inline std::uint32_t Races::write(std::uint32_t at) {
  Touched& cell = touched_[at];
  // Those that read it since then are known to wait for who wrote it.
  const std::uint32_t last = cell.reader == nobody ? cell.writer : cell.reader;
  if (last != nobody && !waits(last)) return last;
  for (std::uint32_t each = cell.earlier; each != nobody; each = readers_[each].earlier) {
    if (!waits(readers_[each].step)) return readers_[each].step;
  }
  cell = {.writer = step_};
  return nobody;
}

inline void Races::begin(std::uint32_t number, std::span<const std::uint32_t> awaited) {
  step_ = number;
  is_search_begun_ = false;
  for (const std::uint32_t each : awaited) reached_by_[each] = number;
  if (awaited.size() < number) return;
  const auto before = std::span(reached_by_).first(number);
  if (std::ranges::count(before, number) == number) joint_ = number;
}

Status Races::check(std::uint32_t number) {
  const Step& step = plan_->steps[number];
  begin(number, plan_->awaited(step));
  if (step.count > 1) return check_runs(step);
  std::uint32_t other = nobody;
  if (step.has_source()) other = read(cells_.first(step.source()));
  if (step.has_target() && other == nobody) other = write(cells_.first(step.target()));
  return other == nobody ? Status() : race_with(other);
}

Status Races::check_runs(const Step& step) {
  const CellRuns source = step.has_source() ? cells_.of(step.source()) : CellRuns();
  const CellRuns target = step.has_target() ? cells_.of(step.target()) : CellRuns();
  if (step.has_source() && step.has_target() && is_shifted(source, target)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{}: it writes a part of what it reads, at another place",
                              locate(*plan_, step_)));
  }
  std::uint32_t other = nobody;
  for (const CellRun& run : source) {
    if (other == nobody) other = read_run(run);
  }
  for (const CellRun& run : target) {
    if (other == nobody) other = write_run(run);
  }
  return other == nobody ? Status() : race_with(other);
}

/// What was found out of one cell mostly holds of the next ones.
std::uint32_t Races::read_run(const CellRun& run) {
  std::uint32_t writer = nobody;  // known to be waited for
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    Touched& cell = touched_[i];
    if (cell.writer == writer && cell.reader == nobody) {
      cell.reader = step_;
      continue;
    }
    if (const std::uint32_t other = read(i); other != nobody) return other;
    writer = cell.writer;
  }
  return nobody;
}

std::uint32_t Races::write_run(const CellRun& run) {
  Touched known = {};  // by steps that are known to be waited for
  for (std::uint32_t i = run.begin; i < run.end; ++i) {
    Touched& cell = touched_[i];
    if (cell == known) {
      cell = {.writer = step_};
      continue;
    }
    const Touched before = cell;
    if (const std::uint32_t other = write(i); other != nobody) return other;
    if (before.earlier == nobody) known = before;
  }
  return nobody;
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

Status Races::race_with(std::uint32_t other) const {
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: it touches what step {} ({}) does, and does not wait for it",
                            locate(*plan_, step_), other, describe(plan_->steps[other])));
}

/// Goes back no farther than it must, and from there for the next question.
bool Races::waits_through_others(std::uint32_t earlier) {
  if (!std::exchange(is_search_begun_, true)) {
    const std::span<const std::uint32_t> awaited = plan_->awaited(plan_->steps[step_]);
    reached_.assign(awaited.begin(), awaited.end());
    std::ranges::make_heap(reached_);
  }
  while (reached_by_[earlier] != step_ && !reached_.empty() && reached_.front() > earlier) {
    if (reached_.front() == joint_) return true;
    std::ranges::pop_heap(reached_);
    const std::uint32_t step = reached_.back();
    reached_.pop_back();
    reach(plan_->awaited(plan_->steps[step]));
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

}  // namespace hocket::proof
