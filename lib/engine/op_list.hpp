// Ops on their way to the transport.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

namespace hocket::engine {

/// A vector to whose end it takes little to add.
class OpList {
 public:
  /// One that has done nothing yet.
  TransportOp& add() {
    if (count_ == room_) make_room();
    return ops_[count_++] = {};
  }
  /// Room for one more, so that add() does not throw.
  void reserve_one() {
    if (count_ == room_) make_room();
  }
  void reserve(std::size_t count) {
    while (room_ < count) make_room();
  }
  [[nodiscard]] std::span<const TransportOp> ops() const noexcept { return {ops_.data(), count_}; }
  void drop_first(std::size_t count) noexcept {
    std::copy_n(ops_.begin() + static_cast<std::ptrdiff_t>(count), count_ - count, ops_.begin());
    count_ -= count;
  }
  template <class Is>
  void drop_if(Is is) {
    const auto end = ops_.begin() + static_cast<std::ptrdiff_t>(count_);
    count_ = static_cast<std::size_t>(std::remove_if(ops_.begin(), end, is) - ops_.begin());
  }
  void clear() noexcept { count_ = 0; }
  void swap(OpList& other) noexcept {
    ops_.swap(other.ops_);
    std::swap(room_, other.room_);
    std::swap(count_, other.count_);
  }

 private:
  void make_room() {
    ops_.resize(std::max<std::size_t>(64, 2 * room_));
    room_ = ops_.size();
  }

  std::vector<TransportOp> ops_;
  std::size_t room_ = 0;
  std::size_t count_ = 0;
};

}  // namespace hocket::engine
