// Tells a host that is gone, or cut off, from one whose ranks are late.
//
// A rank that is late does not read, so its receive window closes, and nothing that we send moves
// on. But its host answers every probe of the window. TCP_USER_TIMEOUT can't tell the two apart: it
// also ends connections whose window was closed for too long. So we ask the system (TCP_INFO).
#pragma once

#include "base/clock.hpp"

namespace hocket::net {

/// HOCKET_HOST_TIMEOUT, or the least that makes sense.
[[nodiscard]] Duration host_timeout();

/// Of one connection.
class Silence {
 public:
  /// Whether the other host's system has, for `limit`, answered nothing of what ours sends to it
  /// again and again. Only what was sent counts: a closed window is probed once in up to two
  /// minutes, and between two probes there is nothing to answer. One call of the system; to be
  /// called several times in each limit, as it goes by what it has seen before.
  [[nodiscard]] bool lasts(int socket, Instant now, Duration limit) noexcept;

 private:
  bool is_asking_ = false;  // at the last call, something that was sent again had no answer
  Instant since_ = {};      // at all calls since then
};

/// Ends the connection when what was sent is not acknowledged within HOCKET_HOST_TIMEOUT. Only for
/// connections that never carry more than the other system takes without its process.
void limit_unanswered(int socket) noexcept;

}  // namespace hocket::net
