#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.hpp"

namespace hocket::testing {

/// A clock that stands still until it is told to go on. Any thread.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Duration since_epoch = std::chrono::hours(1)) noexcept
      : since_epoch_(since_epoch.count()) {}

  [[nodiscard]] Instant now() const noexcept override {
    return Instant(Duration(since_epoch_.load()));
  }

  void advance(Duration by) noexcept { since_epoch_ += by.count(); }

 private:
  std::atomic<Duration::rep> since_epoch_;
};

}  // namespace hocket::testing
