// Virtual time, in whole picoseconds, so that sums do not depend on their order.
#pragma once

#include <cstdint>

namespace hocket::sim {

using Time = std::uint64_t;

inline constexpr double ticks_per_second = 1e12;

/// The nearest whole number; times are never negative.
[[nodiscard]] constexpr Time in_whole_ticks(double ticks) noexcept {
  constexpr double half = 0.5;
  return static_cast<Time>(ticks + half);
}
[[nodiscard]] constexpr Time to_time(double seconds) noexcept {
  return in_whole_ticks(seconds * ticks_per_second);
}
[[nodiscard]] constexpr double to_seconds(Time time) noexcept {
  return static_cast<double>(time) / ticks_per_second;
}

/// Bytes a second, 0 for no limit, the other way round.
class Pace {
 public:
  constexpr Pace() = default;
  explicit constexpr Pace(double bytes_per_second) noexcept
      : ticks_per_byte_(bytes_per_second > 0 ? ticks_per_second / bytes_per_second : 0) {}

  [[nodiscard]] constexpr Time of(std::uint64_t bytes) const noexcept {
    return in_whole_ticks(static_cast<double>(bytes) * ticks_per_byte_);
  }

 private:
  double ticks_per_byte_ = 0;
};

}  // namespace hocket::sim
