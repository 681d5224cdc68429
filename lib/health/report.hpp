// How a communicator has failed on this rank, as it is reported to the monitor.
#pragma once

#include <cstdint>
#include <string>

#include "hocket/status.hpp"

#include "health/notice.hpp"

namespace hocket::health {

/// Ranks are those of the world.
struct Report {
  const Status& why;
  std::string operation = {};   // that was under way
  int awaited = -1;             // for whom it was waiting
  bool is_second_hand = false;  // another rank has said so
};

/// What the other ranks are told of it, and when by the time of day.
[[nodiscard]] Notice notice_of(const Report& report, std::uint64_t communicator,
                               std::uint32_t origin, std::int64_t time);

}  // namespace hocket::health
