// Lanes that are over. Communicators come and go, and their lanes have ever larger numbers, though
// a rank does not see all of them, nor in order. So the set is kept as ranges, and those next to
// each other become one. A program that all ranks run alike needs a single range, for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <utility>

#include "base/limits.hpp"

namespace hocket::tcp {

class LaneSet {
 public:
  [[nodiscard]] bool contains(std::uint64_t lane) const noexcept {
    const auto next = ranges_.upper_bound(lane);
    return next != ranges_.begin() && std::prev(next)->second >= lane;
  }

  /// So that the next add() needs no memory.
  void make_room() {
    if (spare_) return;
    Ranges one = {{0, 0}};
    spare_ = one.extract(one.begin());
  }

  /// All from `first` to `last`. The lowest ranges are forgotten when there are too many; without
  /// memory, and without make_room() before, these are.
  void add(std::uint64_t first, std::uint64_t last) noexcept {
    auto next = ranges_.upper_bound(first);
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->second >= last) return;
      if (before->second >= first || before->second + 1 == first) {
        first = before->first;
        spare_ = ranges_.extract(before);
      }
    }
    while (next != ranges_.end() && (next->first <= last || next->first == last + 1)) {
      if (next->second > last) last = next->second;
      spare_ = ranges_.extract(next++);
    }
    try {
      make_room();
    } catch (const std::bad_alloc&) {
      return;
    }
    spare_.key() = first;
    spare_.mapped() = last;
    ranges_.insert(std::move(spare_));
    if (ranges_.size() > limits::closed_lane_ranges_max) ranges_.erase(ranges_.begin());
  }

  using Ranges = std::map<std::uint64_t, std::uint64_t>;
  /// The last lane of each by its first.
  [[nodiscard]] const Ranges& ranges() const noexcept { return ranges_; }

 private:
  Ranges ranges_ = {};
  Ranges::node_type spare_ = {};
};

}  // namespace hocket::tcp
