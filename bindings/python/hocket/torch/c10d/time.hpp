// Timeouts of c10d as Hocket has them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <hocket/hocket.h>

namespace hocket_torch {

inline std::int64_t nanoseconds_of(std::chrono::milliseconds timeout) {
  if (timeout == std::chrono::milliseconds(0)) return HOCKET_NO_WAIT;
  constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 365 * 100);
  return std::chrono::nanoseconds(std::min(timeout, longest)).count();
}

}  // namespace hocket_torch
