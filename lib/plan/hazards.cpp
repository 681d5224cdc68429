#include "plan/hazards.hpp"

#include <algorithm>

namespace hocket::plan {

std::span<const std::uint32_t> Hazards::add(const Step& step) {
  before_.clear();
  noted_by_.push_back(nobody);
  if (step.has_source()) visit(step.source(), false);
  if (step.has_target()) visit(step.target(), true);
  ++step_;
  std::ranges::sort(before_);
  return before_;
}

void Hazards::visit(const Range& range, bool writes) {
  for (const Cells::Run run : cells_.of(range)) {
    if (run.end > touched_.size()) touched_.resize(run.end);
    for (std::uint32_t i = run.begin; i < run.end; ++i) {
      Cell& cell = touched_[i];
      if (!writes) {
        note(cell.writer);
        readers_.push_back({step_, cell.readers});
        cell.readers = static_cast<std::uint32_t>(readers_.size() - 1);
        continue;
      }
      if (cell.readers == nobody) note(cell.writer);  // else they wait for it
      for (std::uint32_t each = cell.readers; each != nobody; each = readers_[each].earlier) {
        note(readers_[each].step);
      }
      cell = {.writer = step_};
    }
  }
}

void Hazards::note(std::uint32_t step) {
  if (step == nobody || step == step_ || noted_by_[step] == step_) return;
  noted_by_[step] = step_;
  before_.push_back(step);
}

}  // namespace hocket::plan
