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
  std::string operation = {};   // the operation that failed; empty if there was none
  int awaited = -1;             // the rank that it was waiting for
  bool is_second_hand = false;  // this rank learned of it from another rank
  bool ends_when_told = false;  // its operations are to be ended when the others have been told
};

/// The notice that tells other ranks of it. `time` is the time of day in ns since 1970.
[[nodiscard]] Notice notice_of(const Report& report, std::uint64_t communicator,
                               std::uint32_t origin, std::int64_t time);

}  // namespace hocket::health
