// The sends of a process that have not ended. It waits for them before it ends, because the ranks
// that receive them count on them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <mutex>
#include <unordered_set>

namespace hocket_torch {

/// A send that torch, or the program, still holds.
class HeldSend {
 public:
  /// Any thread may call it.
  [[nodiscard]] virtual bool has_ended() = 0;

 protected:
  ~HeldSend() = default;
};

/// Any thread may call it.
class Sends {
 public:
  void add(HeldSend& send) {
    const std::lock_guard lock(mutex_);
    held_.insert(&send);
  }
  void remove(HeldSend& send) {
    const std::lock_guard lock(mutex_);
    held_.erase(&send);
  }
  /// Of one that goes on although nobody holds it any more.
  void begin_alone() {
    const std::lock_guard lock(mutex_);
    ++alone_;
  }
  void end_alone() {
    const std::lock_guard lock(mutex_);
    --alone_;
  }

  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    const auto held = std::count_if(held_.begin(), held_.end(),
                                    [](HeldSend* each) { return !each->has_ended(); });
    return alone_ + static_cast<std::size_t>(held);
  }

 private:
  std::mutex mutex_;
  std::unordered_set<HeldSend*> held_;
  std::size_t alone_ = 0;
};

}  // namespace hocket_torch
