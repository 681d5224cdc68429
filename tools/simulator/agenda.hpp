// What is to happen when: events in the order of their times, and those of one time in the order
// in which they were added.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "simulator/time.hpp"

namespace hocket::sim {

/// A radix heap: as time only moves on, an event need only lie with those whose times differ from
/// now in the same highest bit. It moves towards the first bucket at most 64 times, in practice
/// three or four, each time beside its neighbours, where a binary heap of a million events misses
/// the cache at every level.
template <class Event>
class Agenda {
 public:
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] Time now() const noexcept { return now_; }

  /// Not before now.
  void add(Time time, Event event) {
    ++size_;
    bucket(time).push_back({time, event});
  }

  /// There must be one. Its time is now.
  Event take_next() {
    if (next_ == buckets_[0].size()) go_on();
    --size_;
    return buckets_[0][next_++].second;
  }

 private:
  using Bucket = std::vector<std::pair<Time, Event>>;

  [[nodiscard]] Bucket& bucket(Time time) noexcept {
    return buckets_[static_cast<std::size_t>(std::bit_width(time ^ now_))];
  }

  /// To the next time at which there is something.
  void go_on() {
    buckets_[0].clear();
    next_ = 0;
    std::size_t first = 1;
    while (buckets_[first].empty()) ++first;
    moved_.swap(buckets_[first]);
    now_ = moved_.front().first;
    for (const auto& each : moved_) now_ = each.first < now_ ? each.first : now_;
    for (const auto& each : moved_) bucket(each.first).push_back(each);
    moved_.clear();
  }

  std::array<Bucket, 65> buckets_;
  Bucket moved_;
  std::size_t next_ = 0;  // in the first bucket: those before it are over
  std::size_t size_ = 0;
  Time now_ = 0;
};

}  // namespace hocket::sim
