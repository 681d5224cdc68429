#include "transports/common/failures.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace hocket::common {

Status lost_peer(std::uint32_t peer, std::string_view how, int error) {
  const char* const hint =
      error == ETIMEDOUT ? "its host did not answer within HOCKET_HOST_TIMEOUT: see whether it "
                           "runs, and whether the network between is whole"
                         : "see why its process has ended, or whether the network between is whole";
  return Status(StatusCode::peer_lost, fmt::format("rank {} is lost: {}", peer, how))
      .with_peer(static_cast<int>(peer))
      .with_system_error(error)
      .with_hint(hint);
}

Status unanswered_by_peer(std::uint32_t peer) {
  return lost_peer(peer, "its connection broke", ETIMEDOUT);
}

Status too_many_channels(std::size_t count) {
  return Status(StatusCode::limit_exceeded,
                fmt::format("this rank has {} channels open, the most that there can be", count))
      .with_hint("free communicators that are not needed any more");
}

Status too_long(std::uint32_t peer, std::uint64_t bytes, std::uint64_t room) {
  return Status(StatusCode::mismatch,
                fmt::format("rank {} sent {} bytes to a receive of {}", peer, bytes, room))
      .with_peer(static_cast<int>(peer))
      .with_hint("do all ranks call the same operation with the same count?");
}

}  // namespace hocket::common
