// What peers may write to: for each piece of a large message that was asked for, a slot of ours or
// the memory of its receive.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "hocket/transport.hpp"

#include "transports/verbs/channel.hpp"
#include "transports/verbs/regions.hpp"
#include "transports/verbs/slots.hpp"

namespace hocket::verbs {

/// Of a slot for pieces.
inline constexpr std::size_t piece_bytes = 256 << 10;

struct Grant {
  Channel* channel = nullptr;  // null: there is none
  Region* region = nullptr;    // of the receive's memory; null: it is a slot
  std::uint64_t message = 0;   // its number
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  /// Its receive has failed.
  [[nodiscard]] bool is_void() const noexcept {
    return channel->has_failed() && message >= channel->ends_at;
  }
};

class Grants {
 public:
  /// For the next piece of a message.
  struct Room {
    std::uint32_t grant = 0;
    Region* region = nullptr;
    MemoryPart memory = {};
  };

  /// Borrows both: slots for so many pieces at most, and memory of the user.
  Grants(Slots& slots, std::uint32_t slots_most, Regions& regions);

  /// None when there is none now.
  [[nodiscard]] std::optional<Room> room_for(const ReceiveOp& op, const Arrival& arrival);
  void give(const Room& room, Channel& channel, std::uint64_t message, std::uint64_t offset);
  /// Null when there is no such grant of this peer's.
  [[nodiscard]] const Grant* find(const Peer& peer, std::uint32_t number) const noexcept;
  /// It is over, and its room free.
  void end(std::uint32_t number) noexcept;
  /// It is over, but its slot is not free.
  void lend(std::uint32_t number) noexcept;
  void end_all_of(const Peer& peer) noexcept;

 private:
  Slots& slots_;
  Regions& regions_;
  std::vector<Grant> grants_;             // of slots, by these; then of others
  std::vector<std::uint32_t> free_ = {};  // of those others
};

}  // namespace hocket::verbs
