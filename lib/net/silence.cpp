#include "net/silence.hpp"

#include <algorithm>
#include <chrono>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/config.hpp"

namespace hocket::net {
namespace {

using std::chrono::milliseconds;

/// Linux answers a probe of a closed window only once in 500 ms, so that one of those that come
/// soon behind each other may be without an answer until the next, at most 1 s later.
constexpr Duration host_timeout_min = milliseconds(1500);
/// The system's own clock ticks every 10 ms or more often.
constexpr Duration tick = milliseconds(20);

}  // namespace

Duration host_timeout() {
  return std::max(process_config().get(variables::host_timeout), host_timeout_min);
}

bool Silence::lasts(int socket, Instant now, Duration limit) noexcept {
  tcp_info info = {};
  socklen_t bytes = sizeof info;
  const bool is_known = ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0;
  const bool is_connected = is_known && info.tcpi_state != TCP_SYN_SENT;
  if (!is_connected || (info.tcpi_retransmits == 0 && info.tcpi_probes == 0)) {
    is_asking_ = false;
    return false;
  }
  const Instant heard =
      now - milliseconds(std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv));
  if (!is_asking_ || heard > since_ - tick) since_ = now;
  is_asking_ = true;
  return now - since_ >= limit;
}

void limit_unanswered(int socket) noexcept {
  const auto limit = static_cast<unsigned>(std::min<milliseconds::rep>(
      std::chrono::ceil<milliseconds>(host_timeout()).count(), 1 << 30));
  // Best effort: the system has a limit of its own.
  static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &limit, sizeof limit));
}

}  // namespace hocket::net
