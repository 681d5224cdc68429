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
  const std::size_t begin = cut(run.begin);
  const std::size_t end = cut(run.end);
  for (std::size_t i = begin; i < end; ++i) {
    Stretch& stretch = stretches_[i];
    note(stretch.writer);
    readers_.push_back({step_, stretch.readers});
    stretch.readers = static_cast<std::uint32_t>(readers_.size() - 1);
  }
}

void Hazards::write(Cells::Run run) {
  if (run.begin == run.end) return;
  const std::size_t begin = cut(run.begin);
  const std::size_t end = cut(run.end);
  for (std::size_t i = begin; i < end; ++i) {
    const Stretch& stretch = stretches_[i];
    if (stretch.readers == nobody) note(stretch.writer);  // else they wait for it
    for (std::uint32_t each = stretch.readers; each != nobody; each = readers_[each].earlier) {
      note(readers_[each].step);
    }
  }
  stretches_[begin] = {.begin = run.begin, .writer = step_};
  const auto first = stretches_.begin() + static_cast<std::ptrdiff_t>(begin);
  stretches_.erase(first + 1, first + static_cast<std::ptrdiff_t>(end - begin));
}

std::size_t Hazards::cut(std::uint32_t at) {
  const auto next = std::ranges::upper_bound(stretches_, at, {}, &Stretch::begin);
  const auto here = static_cast<std::size_t>(next - stretches_.begin()) - 1;
  if (stretches_[here].begin == at) return here;
  Stretch rest = stretches_[here];
  rest.begin = at;
  stretches_.insert(next, rest);
  return here + 1;
}

void Hazards::note(std::uint32_t step) {
  if (step == nobody || step == step_ || noted_by_[step] == step_) return;
  noted_by_[step] = step_;
  before_.push_back(step);
}

}  // namespace hocket::plan
