// The queues of a channel's ops, and how a message looks on the wire: a header of its length and
// its tag (64 bits each), its number on the channel and a mark (32 bits each), 64 bits of nothing,
// and then its bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "hocket/transport.hpp"

#include "base/bytes.hpp"
#include "transports/common/ring.hpp"

namespace hocket::tcp {

/// A multiple of 16: with 24, which would be enough, an all_reduce of 256 KiB took 1.37 times as
/// long, because the system copies messages from and to places that are aligned differently.
inline constexpr std::size_t header_bytes = 32;
using Header = std::array<std::byte, header_bytes>;

inline constexpr std::uint32_t message_mark = 0x4B'43'4F'48;
/// In place of a length: the channel is closed, and nothing comes behind this. In place of the tag
/// is the reason (pack_reason).
inline constexpr std::uint64_t farewell_length = ~std::uint64_t{0};

/// Its first and second field.
inline std::uint64_t length_in(const std::byte* header) noexcept {
  return load_little_endian<std::uint64_t>(header);
}
inline std::uint64_t tag_in(const std::byte* header) noexcept {
  return load_little_endian<std::uint64_t>(header + 8);
}
/// The others as one.
inline std::uint64_t mark_of(std::uint64_t number) noexcept {
  return std::uint64_t{message_mark} << 32 | static_cast<std::uint32_t>(number);
}
inline std::uint64_t mark_in(const std::byte* header) noexcept {
  return load_little_endian<std::uint64_t>(header + 16);
}

inline Header make_header(std::uint64_t length, std::uint64_t tag, std::uint64_t number) noexcept {
  Header header;
  store_little_endian(header.data(), length);
  store_little_endian(header.data() + 8, tag);
  store_little_endian(header.data() + 16, mark_of(number));
  store_little_endian(header.data() + 24, std::uint64_t{0});
  return header;
}

/// An op that was taken, until its completion.
struct Slot {
  MemoryPart first = {};
  MemoryPart rest = {};
  std::uint64_t token = 0;
  std::uint64_t bytes = 0;  // of the message; of a receive once its header is there
  Header header = {};       // likewise
  bool is_done = false;

  [[nodiscard]] std::uint64_t room() const noexcept { return first.bytes + rest.bytes; }
  [[nodiscard]] std::uint64_t tag() const noexcept { return tag_in(header.data()); }

  /// Calls visit(data, bytes) for each piece of memory between two places in the message.
  template <class Visit>
  void visit(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    if (begin < first.bytes && begin < end) {
      visit(first.data + begin, std::min(end, first.bytes) - begin);
    }
    if (end > first.bytes) {
      const std::uint64_t from = std::max(begin, first.bytes) - first.bytes;
      if (from < end - first.bytes) visit(rest.data + from, end - first.bytes - from);
    }
  }
};

/// Message i travels on stream i mod `streams`.
struct Queues {
  std::uint32_t peer = 0;
  std::uint32_t streams = 1;
  common::Ring<Slot> sends = {};
  common::Ring<Slot> receives = {};
};

}  // namespace hocket::tcp
