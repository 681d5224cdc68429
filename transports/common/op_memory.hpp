// The memory of an op, which may be in two parts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hocket/transport.hpp"

namespace hocket::common {

/// Where the bytes of an op are.
struct OpMemory {
  MemoryPart first = {};
  MemoryPart rest = {};

  [[nodiscard]] std::uint64_t bytes() const noexcept { return first.bytes + rest.bytes; }
  /// So many bytes from an offset on, or as many of them as lie in one part.
  [[nodiscard]] MemoryPart stretch(std::uint64_t offset, std::uint64_t most) const noexcept {
    const MemoryPart& part = offset < first.bytes ? first : rest;
    if (offset >= first.bytes) offset -= first.bytes;
    return {part.data + offset, std::min(most, part.bytes - offset)};
  }
  /// Calls visit(data, bytes) for the memory of each part between two offsets.
  template <class Visit>
  void visit(std::uint64_t begin, std::uint64_t end, Visit visit) const {
    if (begin < std::min(end, first.bytes)) {
      visit(first.data + begin, std::min(end, first.bytes) - begin);
    }
    const std::uint64_t from = std::max(begin, first.bytes);
    if (from < end) visit(rest.data + (from - first.bytes), end - from);
  }
  void copy_to(std::byte* to, std::uint64_t begin, std::uint64_t end) const {
    visit(begin, end, [&to](const std::byte* data, std::uint64_t bytes) {
      std::memcpy(to, data, bytes);
      to += bytes;
    });
  }
  void copy_from(const std::byte* from, std::uint64_t begin, std::uint64_t end) const {
    visit(begin, end, [&from](std::byte* data, std::uint64_t bytes) {
      std::memcpy(data, from, bytes);
      from += bytes;
    });
  }
};

}  // namespace hocket::common
