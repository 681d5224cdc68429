// Lanes that are over, and why. Communicators come and go, and their lanes have ever larger
// numbers, though a rank does not see all of them, nor in order. So the set is kept as ranges, and
// those next to each other that are over for one reason become one. A program that all ranks run
// alike, and that does not fail, needs a single range, for ever.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "base/limits.hpp"

namespace hocket::common {

class LaneSet {
 public:
  [[nodiscard]] bool contains(std::uint64_t lane) const noexcept { return find(lane).has_value(); }
  /// Why it is over (pack_reason); nothing if it is not.
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t lane) const noexcept {
    const auto next = ranges_.upper_bound(lane);
    if (next == ranges_.begin() || std::prev(next)->second.last < lane) return std::nullopt;
    return std::prev(next)->second.reason;
  }

  /// So that the next add() needs no memory.
  void make_room() {
    if (spare_) return;
    Ranges one = {{0, {}}};
    spare_ = one.extract(one.begin());
  }

  /// All from `first` to `last`, for that reason. If all of them are in the set already, they keep
  /// theirs; else the whole merged range gets the new one. When there are too many
  /// ranges, those that are beside each other lose their reasons, or the lowest are forgotten;
  /// without memory, and without make_room() before, these are.
  void add(std::uint64_t first, std::uint64_t last, std::uint64_t reason = 0) noexcept {
    auto next = ranges_.upper_bound(first);
    if (next != ranges_.begin()) {
      const auto before = std::prev(next);
      if (before->second.last >= last) return;
      const bool is_beside = before->second.last + 1 == first && before->second.reason == reason;
      if (before->second.last >= first || is_beside) {
        first = before->first;
        spare_ = ranges_.extract(before);
      }
    }
    while (next != ranges_.end() &&
           (next->first <= last || (next->first == last + 1 && next->second.reason == reason))) {
      if (next->second.last > last) last = next->second.last;
      spare_ = ranges_.extract(next++);
    }
    try {
      make_room();
    } catch (const std::bad_alloc&) {
      return;
    }
    spare_.key() = first;
    spare_.mapped() = {.last = last, .reason = reason};
    ranges_.insert(std::move(spare_));
    if (ranges_.size() > limits::closed_lane_ranges_max) shrink();
  }

  struct Range {
    std::uint64_t last = 0;
    std::uint64_t reason = 0;
  };
  using Ranges = std::map<std::uint64_t, Range>;
  /// By the first lane of each.
  [[nodiscard]] const Ranges& ranges() const noexcept { return ranges_; }

 private:
  /// Where two ranges are beside each other, they become one, of no reason; else the first is
  /// forgotten.
  void shrink() noexcept {
    const auto first = std::adjacent_find(ranges_.begin(), ranges_.end(), [](auto& a, auto& b) {
      return a.second.last + 1 == b.first;
    });
    if (first == ranges_.end()) return void(ranges_.erase(ranges_.begin()));
    first->second = {.last = std::next(first)->second.last, .reason = 0};
    ranges_.erase(std::next(first));
  }

  Ranges ranges_ = {};
  Ranges::node_type spare_ = {};
};

}  // namespace hocket::common
