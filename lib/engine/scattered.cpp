#include "engine/scattered.hpp"

#include <algorithm>

namespace hocket::engine {

void Scattered::assign(std::span<const Piece> pieces, std::uint64_t element_bytes) {
  parts_.clear();
  std::uint64_t end = 0;
  for (const Piece& each : pieces) {
    const std::uint64_t bytes = each.count * element_bytes;
    if (bytes == 0) continue;
    end += bytes;
    parts_.push_back({.end = end, .memory = static_cast<std::byte*>(each.data), .bytes = bytes});
  }
}

MemoryPart Scattered::at(std::uint64_t offset, std::uint64_t most) const noexcept {
  const auto part = std::ranges::upper_bound(parts_, offset, {}, &Part::end);
  const std::uint64_t left = part->end - offset;
  return {part->memory + (part->bytes - left), std::min(left, most)};
}

}  // namespace hocket::engine
