// Lanes that are over. Communicators come and go, and their lanes have ever larger numbers, though
// a rank does not see all of them, nor in order. So the set is kept as ranges, and those next to
// each other become one. A program that all ranks run alike needs a single range, for ever.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "base/limits.hpp"

namespace hocket::tcp {

class LaneSet {
 public:
  [[nodiscard]] bool contains(std::uint64_t lane) const noexcept {
    const auto next = ranges_.upper_bound(lane);
    return next != ranges_.begin() && std::prev(next)->second >= lane;
  }

  /// All from `first` to `last`. The lowest ranges are forgotten when there are too many.
  void add(std::uint64_t first, std::uint64_t last) {
    auto next = ranges_.upper_bound(first);
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->second >= last) return;
      if (before->second >= first || before->second + 1 == first) {
        first = before->first;
        ranges_.erase(before);
      }
    }
    while (next != ranges_.end() && (next->first <= last || next->first == last + 1)) {
      if (next->second > last) last = next->second;
      next = ranges_.erase(next);
    }
    ranges_.emplace(first, last);
    if (ranges_.size() > limits::closed_lane_ranges_max) ranges_.erase(ranges_.begin());
  }

  [[nodiscard]] std::size_t ranges() const noexcept { return ranges_.size(); }

 private:
  std::map<std::uint64_t, std::uint64_t> ranges_ = {};  // the last lane by the first
};

}  // namespace hocket::tcp
