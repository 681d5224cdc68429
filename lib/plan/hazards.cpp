#include "plan/hazards.hpp"

#include <algorithm>

namespace hocket::plan {

void Hazards::restart(const CellMap& cells) {
  cells_ = cells;
  cell_count_ = 0;
  begins_.clear();
  readers_.clear();
  step_ = 0;
  if (cells_.vector() > 0) make_room(cells_.count(0) - 1);
}

void Hazards::add(const Step& step, std::vector<std::uint32_t>& awaited) {
  const std::size_t first = awaited.size();
  if (step.has_source()) {
    const CellRuns runs = cells_.of(step.source());
    read(runs[0], awaited);
    if (runs[1].size() > 0) read(runs[1], awaited);
  }
  if (step.has_target()) {
    const CellRuns runs = cells_.of(step.target());
    write(runs[0], awaited);
    if (runs[1].size() > 0) write(runs[1], awaited);
  }
  ++step_;
  if (awaited.size() - first < 2) return;
  const auto begin = awaited.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, awaited.end());
  awaited.erase(std::unique(begin, awaited.end()), awaited.end());
}

void Hazards::read(CellRun run, std::vector<std::uint32_t>& awaited) {
  cut_out(run);
  std::uint32_t at = run.begin;
  read(stretches_[at], awaited);
  while (at + 1 < run.end && (at = begins_.first_after(at)) < run.end) {
    read(stretches_[at], awaited);
  }
}

void Hazards::write(CellRun run, std::vector<std::uint32_t>& awaited) {
  cut_out(run);
  std::uint32_t at = run.begin;
  write(stretches_[at], awaited);
  while (at + 1 < run.end && (at = begins_.first_after(at)) < run.end) {
    write(stretches_[at], awaited);
    begins_.unset(at);
  }
}

inline void Hazards::read(Stretch& stretch, std::vector<std::uint32_t>& awaited) {
  const std::uint32_t step = step_;
  if (stretch.writer != nobody && stretch.writer != step) awaited.push_back(stretch.writer);
  if (stretch.reader != nobody) {
    readers_.push_back({stretch.reader, stretch.earlier});
    stretch.earlier = static_cast<std::uint32_t>(readers_.size() - 1);
  }
  stretch.reader = step;
}

inline void Hazards::write(Stretch& stretch, std::vector<std::uint32_t>& awaited) {
  const std::uint32_t step = step_;
  // Who read it waits for who wrote it.
  const std::uint32_t last = stretch.reader == nobody ? stretch.writer : stretch.reader;
  if (last != nobody && last != step) awaited.push_back(last);
  for (std::uint32_t each = stretch.earlier; each != nobody; each = readers_[each].earlier) {
    awaited.push_back(readers_[each].step);
  }
  stretch = {.writer = step, .reader = nobody, .earlier = nobody};
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
