// A buffer that lies in several pieces of memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/transport.hpp"
#include "hocket/types.hpp"

namespace hocket::engine {

class Scattered {
 public:
  /// The buffer is these pieces, in this order. Throws std::bad_alloc.
  void assign(std::span<const Piece> pieces, std::uint64_t element_bytes);
  void clear() noexcept { parts_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return parts_.empty(); }

  /// The contiguous bytes at `offset`, which is below the end; at most `most`.
  [[nodiscard]] MemoryPart at(std::uint64_t offset, std::uint64_t most) const noexcept;

 private:
  struct Part {
    std::uint64_t end;  // in the buffer
    std::byte* memory;  // of its first byte
    std::uint64_t bytes;
  };

  std::vector<Part> parts_;  // that are not empty
};

}  // namespace hocket::engine
