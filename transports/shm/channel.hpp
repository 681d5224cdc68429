// A channel of shared memory: its ops, what is on the way, and what has come.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "hocket/transport.hpp"

#include "transports/common/ring.hpp"
#include "transports/shm/board.hpp"

namespace hocket::shm {

/// A part of a message that was written, and that its reader may not be done with.
struct OnTheWay {
  Board::Slot slot = {};  // of the last part in a slot; else without data
  std::uint32_t bytes = 0;
};

/// A part of a message that has come and was not asked for yet.
struct Arrived {
  const std::byte* data = nullptr;  // null: it is in `copy`
  std::uint32_t bytes = 0;
  bool is_last = false;
  bool is_in_one_slot = false;
  std::uint64_t tag = 0;
  std::array<std::byte, inline_bytes_max> copy = {};
};

struct Channel {
  ChannelId id = 0;
  std::uint32_t peer = 0;
  std::uint64_t lane = 0;
  bool is_open = false;     // here; else only the peer has opened it
  bool is_closed = false;   // by us
  bool is_blocked = false;  // in the list of those that wait for room

  // What goes.
  std::uint32_t number = 0;  // ours, in notes
  Board::Slot reading = {};
  bool is_announced = false;
  bool withholds_farewell = false;
  bool owes_farewell = false;
  bool has_said_farewell = false;
  std::uint64_t reason = 0;         // of the farewell
  std::uint32_t farewell_note = 0;  // its number
  common::Ring<TransportOp> sends = {};
  std::uint64_t sent = 0;    // bytes of the first of them
  Board::Slot filling = {};  // has room for more of it; without data: none
  std::size_t filled = 0;    // bytes of that slot, out of so many
  std::size_t to_fill = 0;
  common::Ring<OnTheWay> on_the_way = {};
  std::uint64_t bytes_on_the_way = 0;

  // What comes.
  std::uint32_t their_number = 0;
  bool is_known = false;  // their_number is
  common::Ring<Arrived> arrived = {};
  common::Ring<TransportOp> receives = {};
  std::uint64_t received = 0;  // bytes of the first of them

  Status end = {};      // why nothing comes behind what has arrived
  Status failure = {};  // of every op from now on

  [[nodiscard]] bool is_over() const noexcept { return !failure.ok(); }
};

}  // namespace hocket::shm
