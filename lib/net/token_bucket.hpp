// How many strangers a listener lets in: so many at once, and so many a second in the long run.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/clock.hpp"

namespace hocket {

class TokenBucket {
 public:
  /// Full at first. Both at least 1.
  constexpr TokenBucket(std::int64_t capacity, std::int64_t tokens_per_second) noexcept
      : capacity_(capacity), interval_(Duration(std::chrono::seconds(1)) / tokens_per_second) {}

  /// Takes one if there is one.
  [[nodiscard]] bool take(Instant now) noexcept {
    refill(now);
    if (tokens_ == 0) return false;
    --tokens_;
    return true;
  }

  /// Gives one back that turned out not to be needed.
  void give_back() noexcept { tokens_ = std::min(tokens_ + 1, capacity_); }

  /// When there will be this many, which is at most the capacity.
  [[nodiscard]] Instant when(std::int64_t tokens, Instant now) noexcept {
    refill(now);
    return tokens <= tokens_ ? now : filled_at_ + (tokens - tokens_) * interval_;
  }

  [[nodiscard]] bool is_full(Instant now) noexcept {
    refill(now);
    return tokens_ == capacity_;
  }

 private:
  void refill(Instant now) noexcept {
    const std::int64_t more = (now - filled_at_) / interval_;
    if (more <= 0) return;
    const bool is_full = more >= capacity_ - tokens_;
    tokens_ = is_full ? capacity_ : tokens_ + more;
    filled_at_ = is_full ? now : filled_at_ + more * interval_;
  }

  std::int64_t capacity_;
  Duration interval_;  // between two tokens
  std::int64_t tokens_ = capacity_;
  Instant filled_at_ = {};  // up to here, time has been turned into tokens
};

}  // namespace hocket
