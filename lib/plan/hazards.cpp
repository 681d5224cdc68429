#include "plan/hazards.hpp"

#include <algorithm>

namespace hocket::plan {

std::vector<std::uint32_t> Hazards::add(const Step& step) {
  const std::uint32_t number = next_++;
  std::vector<std::uint32_t> before;
  if (step.has_source()) {
    visit_stretches(step.source(), [&](Stretch part) { read(part, number, before); });
  }
  if (step.has_target()) {
    visit_stretches(step.target(), [&](Stretch part) { write(part, number, before); });
  }
  std::ranges::sort(before);
  const auto repeated = std::ranges::unique(before);
  before.erase(repeated.begin(), repeated.end());
  std::erase(before, number);
  return before;
}

template <class Visit>
void Hazards::visit_stretches(const Range& range, Visit visit) {
  const std::uint32_t blocks = range.buffer == Buffer::scratch
                                   ? UINT32_MAX
                                   : blocks_of(problem_, shape_, rank_, range.buffer);
  const Parts parts = split(range, blocks, shape_);
  for (const Range& part : {parts.first, parts.second}) {
    if (part.count > 0) visit(stretch_of(part));
  }
}

Hazards::Stretch Hazards::stretch_of(const Range& part) {
  if (part.buffer == Buffer::scratch) return {scratch_, part.first, part.first + part.count};
  const bool is_apart = part.buffer == Buffer::out && !can_be_in_place(problem_.operation);
  const std::uint32_t begin =
      part.first + (is_apart ? 0 : place_in_vector(problem_, shape_, rank_, part.buffer));
  return {is_apart ? apart_ : vector_, begin, begin + part.count};
}

/// A use begins there from now on.
Hazards::Uses::iterator Hazards::cut(Uses& uses, std::uint32_t at) {
  const auto next = uses.upper_bound(at);
  if (next == uses.begin()) return uses.emplace_hint(next, at, Use{});
  const auto here = std::prev(next);
  return here->first == at ? here : uses.emplace_hint(next, at, here->second);
}

void Hazards::read(Stretch stretch, std::uint32_t step, std::vector<std::uint32_t>& before) {
  const auto begin = cut(stretch.uses, stretch.begin);
  const auto end = cut(stretch.uses, stretch.end);
  for (auto each = begin; each != end; ++each) {
    if (each->second.writer != nobody) before.push_back(each->second.writer);
    each->second.readers.push_back(step);
  }
}

void Hazards::write(Stretch stretch, std::uint32_t step, std::vector<std::uint32_t>& before) {
  const auto begin = cut(stretch.uses, stretch.begin);
  const auto end = cut(stretch.uses, stretch.end);
  for (auto each = begin; each != end; ++each) {
    Use& use = each->second;
    // Its readers wait for the writer.
    const bool is_read = use.readers.size() > (std::ranges::count(use.readers, step) > 0 ? 1 : 0);
    if (!is_read && use.writer != nobody) before.push_back(use.writer);
    before.insert(before.end(), use.readers.begin(), use.readers.end());
  }
  stretch.uses.erase(std::next(begin), end);
  begin->second = {.writer = step};
}

}  // namespace hocket::plan
