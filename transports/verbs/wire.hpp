// What two ends say to each other: cards over the authenticated connection before there are queue
// pairs, headers of messages over these. Little-endian, each of a fixed size (docs/wire.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/limits.hpp"
#include "transports/verbs/port.hpp"

namespace hocket::verbs {

inline constexpr std::uint32_t card_version = 4;

/// Our end of a queue pair.
struct End {
  Gid gid = {};
  std::uint32_t queue_pair = 0;
  std::uint32_t first_packet = 0;  // its number
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;  // IBV_MTU_*
  bool is_ethernet = false;
};

/// Everything by which the other end connects its queue pairs to ours, one for each rail.
struct Card {
  std::uint32_t version = card_version;
  std::uint32_t rails = 0;
  std::array<End, limits::verbs_rails_max> ends = {};

  [[nodiscard]] std::string encode() const;
  /// Of exactly card_bytes. Fails with mismatch for one of another version.
  [[nodiscard]] static Result<Card> decode(std::string_view bytes);
};
inline constexpr std::size_t end_bytes = 28;
inline constexpr std::size_t card_bytes = 8 + limits::verbs_rails_max * end_bytes;
/// Behind the card, once the queue pairs can receive.
inline constexpr char ready_mark = 'R';

/// What a message is about; the meaning of the header's fields follows from it.
enum class Kind : std::uint16_t {
  data = 1,         // a small message: `length` bytes behind the header
  announce = 2,     // a large one, of `length` bytes, which wait to be asked for
  grant = 3,        // write these `length` bytes of it, from `offset` on, to `address` over `rail`
  drop = 4,         // what `slot` was granted for is not written any more
  credit = 5,       // only `consumed`
  close = 6,        // of the lane: messages below `number` are whole, others don't come
  nothing = 7,      // the last word of one who leaves
  close_lanes = 8,  // all lanes from `lane` to `length` are closed
};

struct Header {
  std::uint64_t lane = 0;
  std::uint32_t number = 0;    // of the message on the lane, low bits
  std::uint32_t consumed = 0;  // of the other direction: how many messages have met their receives
  Kind kind = Kind::data;
  std::uint16_t rail = 0;
  std::uint32_t slot = 0;  // by which the one who granted knows it; the immediate of the write
  std::uint64_t length = 0;
  std::uint64_t tag = 0;  // of a message; of an end the reason (pack_reason)
  // Of a grant:
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint32_t key = 0;

  [[nodiscard]] std::size_t bytes() const noexcept;
  /// To at least header_bytes_max.
  void encode(std::byte* to) const noexcept;
  /// From at least bytes() of what it turns out to be; `available` are there. Fails with
  /// protocol_error.
  [[nodiscard]] static Result<Header> decode(const std::byte* from, std::size_t available);
};
inline constexpr std::size_t header_bytes = 48;  // a multiple of 16, for what is lent behind it
inline constexpr std::size_t header_bytes_max = 64;

}  // namespace hocket::verbs
