#include "plan/hazards.hpp"

#include <algorithm>
#include <utility>

namespace hocket::plan {
namespace {

/// Each once, in rising order.
void sort_from(std::size_t first, std::vector<std::uint32_t>& awaited) {
  if (awaited.size() == first + 2) {  // as in many steps
    if (awaited[first] > awaited[first + 1]) std::swap(awaited[first], awaited[first + 1]);
    if (awaited[first] == awaited[first + 1]) awaited.pop_back();
    return;
  }
  const auto begin = awaited.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, awaited.end());
  awaited.erase(std::unique(begin, awaited.end()), awaited.end());
}

}  // namespace

void Hazards::restart(const CellMap& cells, std::uint32_t step) {
  cells_ = cells;
  cell_count_ = 0;
  begins_.clear();
  readers_.clear();
  step_ = step;
  if (cells_.vector() > 0) make_room(cells_.count(0) - 1);
}

inline Hazards::Stretch* Hazards::single(const Range& range) noexcept {
  const std::uint32_t cell = cells_.first(range);
  const bool is_stretch =
      range.count == 1 && cell < cell_count_ && begins_.has(cell) && begins_.has(cell + 1);
  return is_stretch ? &stretches_[cell] : nullptr;
}

inline void Hazards::read(Stretch& stretch, std::vector<std::uint32_t>& awaited) {
  if (stretch.writer != nobody && stretch.writer != step_) awaited.push_back(stretch.writer);
  if (stretch.reader != nobody) {
    readers_.push_back({stretch.reader, stretch.earlier});
    stretch.earlier = static_cast<std::uint32_t>(readers_.size() - 1);
  }
  stretch.reader = step_;
}

inline void Hazards::write(Stretch& stretch, std::vector<std::uint32_t>& awaited) {
  // Who read it waits for who wrote it.
  const std::uint32_t last = stretch.reader == nobody ? stretch.writer : stretch.reader;
  if (last != nobody && last != step_) awaited.push_back(last);
  for (std::uint32_t each = stretch.earlier; each != nobody; each = readers_[each].earlier) {
    awaited.push_back(readers_[each].step);
  }
  stretch = {.writer = step_, .reader = nobody, .earlier = nobody};
}

template <class Visit>
void Hazards::visit(const Range& range, Visit visit) {
  for (const CellRun& run : cells_.of(range)) {
    if (run.begin == run.end) return;
    if (run.end > cell_count_) make_room(run.begin);
    if (!begins_.has(run.begin)) cut(run.begin);
    if (!begins_.has(run.end)) cut(run.end);
    for (std::uint32_t at = run.begin;;) {
      visit(at == run.begin ? 0 : at, stretches_[at]);
      if (at + 1 == run.end) break;
      at = begins_.first_after(at);
      if (at >= run.end) break;
    }
  }
}

void Hazards::add(const Step& step, std::vector<std::uint32_t>& awaited) {
  const std::size_t first = awaited.size();
  if (step.has_source()) {
    Stretch* const stretch = single(step.source());
    stretch != nullptr ? read(*stretch, awaited) : read(step.source(), awaited);
  }
  if (step.has_target()) {
    Stretch* const stretch = single(step.target());
    stretch != nullptr ? write(*stretch, awaited) : write(step.target(), awaited);
  }
  ++step_;
  if (awaited.size() >= first + 2) sort_from(first, awaited);
}

void Hazards::read(const Range& range, std::vector<std::uint32_t>& awaited) {
  visit(range, [&](std::uint32_t /*first*/, Stretch& stretch) { read(stretch, awaited); });
}

void Hazards::write(const Range& range, std::vector<std::uint32_t>& awaited) {
  visit(range, [&](std::uint32_t first, Stretch& stretch) {
    write(stretch, awaited);
    if (first > 0) begins_.unset(first);  // a part of the stretch before it from now on
  });
}

void Hazards::cut(std::uint32_t at) {
  stretches_[at] = stretches_[begins_.last_before(at)];
  begins_.set(at);
}

void Hazards::make_room(std::uint32_t cell) {
  const std::uint32_t vector = cells_.vector();
  const std::uint32_t count = (cell / vector + 1) * vector;
  if (count >= room_) {
    const std::uint32_t room = std::max(count + 1, 2 * room_);
    auto larger = std::make_unique_for_overwrite<Stretch[]>(room);
    std::copy_n(stretches_.get(), std::min(cell_count_ + 1, room_), larger.get());
    stretches_ = std::move(larger);
    room_ = room;
  }
  begins_.grow(count + 1);
  for (std::uint32_t at = cell_count_; at <= count; at += vector) {
    if (begins_.has(at)) continue;  // where it ended until now
    stretches_[at] = {.writer = nobody, .reader = nobody, .earlier = nobody};
    begins_.set(at);
  }
  cell_count_ = count;
}

}  // namespace hocket::plan
