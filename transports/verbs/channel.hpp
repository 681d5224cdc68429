// A channel: ops that were taken, messages that came, and which of them belong together. Numbers of
// messages count from 0 for each direction. And a peer: queue pairs, one for each rail, and what of
// all its channels waits to go over them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "transports/common/lane_set.hpp"
#include "transports/common/op_memory.hpp"
#include "transports/common/ring.hpp"
#include "transports/verbs/queue_pair.hpp"
#include "transports/verbs/wire.hpp"

namespace hocket::verbs {

struct Peer;

struct SendOp {
  common::OpMemory memory = {};
  std::uint64_t token = 0;
  std::uint64_t tag = 0;
  std::uint64_t asked = 0;    // of a large one, by the other end: from the beginning on
  std::uint64_t written = 0;  // and sent to it
  std::uint32_t pins = 0;     // pieces that the adapter still reads from its memory
  Region* device = nullptr;   // in which its memory is, if that is of a device
  bool is_done = false;
};

struct ReceiveOp {
  common::OpMemory memory = {};
  std::uint64_t token = 0;
  bool may_lend = false;
  bool is_done = false;
  std::uint32_t pins = 0;    // pieces that may still be written to its memory from afar
  Region* device = nullptr;  // in which its memory is, if that is of a device
  std::uint64_t bytes = 0;   // of the message
  std::uint64_t tag = 0;     // likewise
  const std::byte* lent = nullptr;
};

/// A message that came, or is announced.
struct Arrival {
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;
  bool is_large = false;
  std::uint64_t granted = 0;  // of a large one: asked for
  std::uint64_t written = 0;  // and come
  // A small one until it meets its receive: in the slot where it came, or moved out of its way.
  const std::byte* data = nullptr;
  std::unique_ptr<std::byte[]> kept = {};

  [[nodiscard]] bool is_whole() const noexcept { return !is_large || written == bytes; }
};

struct Channel {
  /// Messages sent that have not met their receives, at most.
  static constexpr std::uint32_t window = 64;

  Channel(Peer& of, std::uint64_t on) : peer(of), lane(on) {}

  Peer& peer;
  const std::uint64_t lane;
  std::optional<ChannelId> id = {};  // once it is open; messages may come before

  common::Ring<SendOp> sends = {};
  std::uint64_t started = 0;   // sends of which the other end knows
  std::uint32_t consumed = 0;  // of them, those that have met their receives there

  common::Ring<ReceiveOp> receives = {};
  common::Ring<Arrival> arrivals = {};
  std::uint64_t matched = 0;       // pairs of both
  std::uint64_t matched_told = 0;  // and of them the other end knows
  std::uint64_t granting = 0;      // the message of which the next piece is asked for

  Status failure = {};        // of every send from now on
  std::uint64_t ends_at = 0;  // and of every receive from this number on
  bool is_ready = false;      // in its peer's list of those with something to send
  bool is_hungry = false;     // in the list of those with something to ask for
  bool is_withheld = false;   // in the list of those that have failed, with ops that have pins
  bool is_ended = false;      // in the list of those whose lanes are over
  std::uint32_t granted = 0;  // pieces that we asked for, and that have not come
  std::uint32_t jobs = 0;     // in its peer's list of pieces that were asked of us

  [[nodiscard]] bool has_failed() const noexcept { return !failure.ok(); }
  [[nodiscard]] bool has_credit() const noexcept {
    return static_cast<std::uint32_t>(started) - consumed < window;
  }
  [[nodiscard]] bool can_start() const noexcept {
    return !has_failed() && started < sends.end() && has_credit();
  }
  /// Ops that have failed, but whose memory is not their user's again.
  [[nodiscard]] bool withholds_ops() const noexcept {
    const bool has_failed_receives = !receives.empty() && receives.begin() >= ends_at;
    return has_failed() && (!sends.empty() || has_failed_receives);
  }
  /// Nothing refers to it any more.
  [[nodiscard]] bool is_idle() const noexcept {
    const bool is_listed = is_ready || is_hungry || is_withheld;
    return sends.empty() && receives.empty() && granted == 0 && jobs == 0 && !is_listed;
  }
  /// The first message that is not there in full.
  [[nodiscard]] std::uint64_t first_incomplete() const noexcept {
    std::uint64_t number = arrivals.begin();
    while (number < arrivals.end() && arrivals[number].is_whole()) ++number;
    return number;
  }
};

/// A piece of a large message that the other end has asked for.
struct Job {
  Channel* channel = nullptr;
  Header grant = {};
};

struct Peer {
  explicit Peer(std::uint32_t number) : rank(number) {}

  const std::uint32_t rank;
  std::vector<std::unique_ptr<QueuePair>> pairs = {};  // the first carries all but pieces
  bool is_linked = false;                              // both ends can receive
  Status failure = {};                                 // of every channel, for good
  bool is_doomed = false;                              // about to fail

  std::map<std::uint64_t, Channel> lanes = {};
  common::LaneSet closed_lanes = {};  // by the peer
  common::Ring<Header> controls = {};
  common::Ring<Job> jobs = {};
  common::Ring<Channel*> ready = {};
  bool is_busy = false;         // in the list of those for whom something waits
  std::uint32_t granted = 0;    // pieces that we asked for, and that have not come
  std::uint32_t next_rail = 0;  // for the next piece

  [[nodiscard]] bool is_lost() const noexcept { return !failure.ok(); }
  [[nodiscard]] bool has_work() const noexcept {
    return !controls.empty() || !jobs.empty() || !ready.empty();
  }
};

/// A number of which only the low bits are known, near one that is known in full.
[[nodiscard]] inline std::uint64_t widen(std::uint32_t low, std::uint64_t near) noexcept {
  return near + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                    static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near))));
}

}  // namespace hocket::verbs
