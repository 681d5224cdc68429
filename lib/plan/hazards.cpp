#include "plan/hazards.hpp"

#include <algorithm>

namespace hocket::plan {

std::span<const std::uint32_t> Hazards::add(const Step& step) {
  before_.clear();
  noted_by_.push_back(nobody);
  if (step.has_source()) {
    for (const Cells::Run run : cells_.of(step.source())) read(run);
  }
  if (step.has_target()) {
    for (const Cells::Run run : cells_.of(step.target())) write(run);
  }
  ++step_;
  std::ranges::sort(before_);
  return before_;
}

void Hazards::read(Cells::Run run) {
  if (run.begin == run.end) return;
  Region& region = regions_[cells_.region(run.begin)];
  const std::size_t begin = region.cut(run.begin);
  const std::size_t end = region.cut(run.end);
  for (std::size_t i = begin; i < end; ++i) {
    Stretch& stretch = region.stretches[i];
    note(stretch.writer);
    readers_.push_back({step_, stretch.readers});
    stretch.readers = static_cast<std::uint32_t>(readers_.size() - 1);
  }
}

void Hazards::write(Cells::Run run) {
  if (run.begin == run.end) return;
  Region& region = regions_[cells_.region(run.begin)];
  const std::size_t begin = region.cut(run.begin);
  const std::size_t end = region.cut(run.end);
  for (std::size_t i = begin; i < end; ++i) {
    const Stretch& stretch = region.stretches[i];
    if (stretch.readers == nobody) note(stretch.writer);  // else they wait for it
    for (std::uint32_t each = stretch.readers; each != nobody; each = readers_[each].earlier) {
      note(readers_[each].step);
    }
  }
  region.stretches[begin] = {.begin = run.begin, .writer = step_};
  const auto first = region.stretches.begin() + static_cast<std::ptrdiff_t>(begin);
  region.stretches.erase(first + 1, first + static_cast<std::ptrdiff_t>(end - begin));
}

std::size_t Hazards::Region::cut(std::uint32_t at) {
  latest = find(at);
  if (stretches[latest].begin == at) return latest;
  Stretch rest = stretches[latest];
  rest.begin = at;
  stretches.insert(stretches.begin() + static_cast<std::ptrdiff_t>(latest) + 1, rest);
  return latest + 1;
}

/// Steps mostly touch what is beside the last thing that was touched.
std::size_t Hazards::Region::find(std::uint32_t at) const noexcept {
  for (const std::size_t near : {latest, latest + 1, latest - 1}) {
    const bool is_in = near < stretches.size() && stretches[near].begin <= at &&
                       (near + 1 == stretches.size() || at < stretches[near + 1].begin);
    if (is_in) return near;
  }
  const auto next = std::ranges::upper_bound(stretches, at, {}, &Stretch::begin);
  return static_cast<std::size_t>(next - stretches.begin()) - 1;
}

void Hazards::note(std::uint32_t step) {
  if (step == nobody || step == step_ || noted_by_[step] == step_) return;
  noted_by_[step] = step_;
  before_.push_back(step);
}

}  // namespace hocket::plan
