// The sends of a process that have not ended. It waits for them before it ends, because other ranks
// wait for their messages.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <unordered_set>

namespace hocket_torch {

/// A send whose Work still exists. It may have ended without anybody having asked.
class Send {
 public:
  /// Any thread may call it.
  [[nodiscard]] virtual bool has_ended_unnoticed() = 0;

 protected:
  ~Send() = default;
};

/// All functions may be called from any thread.
class Sends : public std::enable_shared_from_this<Sends> {
 public:
  /// A send counts as long as what this returns lives: until all is freed that the send needs.
  [[nodiscard]] std::shared_ptr<void> begin() {
    ++count_;
    return {this, [self = shared_from_this()](void* /*this*/) { --self->count_; }};
  }
  void add(Send& send) {
    const std::lock_guard lock(mutex_);
    existing_.insert(&send);
  }
  void remove(Send& send) {
    const std::lock_guard lock(mutex_);
    existing_.erase(&send);
  }

  [[nodiscard]] std::size_t count() {
    const std::lock_guard lock(mutex_);
    for (;;) {
      const std::size_t all = count_;
      const auto ended = std::count_if(existing_.begin(), existing_.end(),
                                       [](Send* each) { return each->has_ended_unnoticed(); });
      // Else one may have ended after it was looked at, and would be subtracted twice.
      if (count_ == all) return all - static_cast<std::size_t>(ended);
    }
  }

 private:
  std::atomic<std::size_t> count_ = 0;
  std::mutex mutex_;
  std::unordered_set<Send*> existing_;
};

}  // namespace hocket_torch
