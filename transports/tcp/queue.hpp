// Queues, those of a channel's ops, and how a message looks on the wire: a header of its length and
// its tag (64 bits each), its number on the channel and a mark (32 bits each), 64 bits of nothing,
// and then its bytes.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/bytes.hpp"

namespace hocket::tcp {

/// A queue whose elements keep their numbers: 0 for the first that was ever pushed, and so on. It
/// grows, and keeps its memory.
template <class T>
class Ring {
 public:
  /// Numbers of the first element, and behind the last one.
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }
  [[nodiscard]] std::uint64_t end() const noexcept { return end_; }
  [[nodiscard]] bool empty() const noexcept { return begin_ == end_; }
  [[nodiscard]] std::uint64_t size() const noexcept { return end_ - begin_; }

  [[nodiscard]] T& operator[](std::uint64_t number) noexcept { return places_[place(number)]; }
  [[nodiscard]] const T& operator[](std::uint64_t number) const noexcept {
    return places_[place(number)];
  }
  [[nodiscard]] T& front() noexcept { return (*this)[begin_]; }

  /// So that push() does not throw while there are no more than so many.
  void reserve(std::uint64_t count) {
    while (places_.size() < count) grow();
  }
  void push(T element) {
    if (size() == places_.size()) grow();
    places_[place(end_++)] = std::move(element);
  }
  T pop() noexcept {
    T& first = places_[place(begin_++)];
    if constexpr (std::is_trivially_destructible_v<T>) return first;
    return std::exchange(first, T{});
  }

 private:
  static constexpr std::size_t places_min = 16;

  /// The number of places is a power of two.
  [[nodiscard]] std::size_t place(std::uint64_t number) const noexcept {
    return static_cast<std::size_t>(number & (places_.size() - 1));
  }

  void grow() {
    std::vector<T> larger(places_.empty() ? places_min : 2 * places_.size());
    for (std::uint64_t i = begin_; i < end_; ++i) {
      larger[static_cast<std::size_t>(i & (larger.size() - 1))] = std::move((*this)[i]);
    }
    places_ = std::move(larger);
  }

  std::vector<T> places_ = {};
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

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
  Ring<Slot> sends = {};
  Ring<Slot> receives = {};
};

}  // namespace hocket::tcp
