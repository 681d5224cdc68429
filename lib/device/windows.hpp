// How a collective on device memory is cut into collectives on slots of the host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "hocket/collective.hpp"

#include "base/position.hpp"

namespace hocket::device {

/// Rows of the user's memory that go to a slot, or come from it, where they lie behind each other.
struct Block {
  std::byte* user = nullptr;
  std::size_t user_pitch = 0;  // from row to row
  std::size_t slot_offset = 0;
  std::size_t row_bytes = 0;
  std::size_t rows = 1;
};

/// Whether adapters reach the slots in the device's memory, so that no host may touch them; else
/// they are the host's, pinned.
enum class SlotPlace : std::uint8_t { host, device };

struct SlotShape {
  std::size_t bytes = 0;
  SlotPlace place = SlotPlace::host;
};

/// One of the collectives. Its memory is used again.
struct Window {
  std::vector<Block> down = {};  // to the slot, before
  std::vector<Block> up = {};    // from it, behind
  Collective collective = {};    // all but in and out, which lie in the slot
  bool has_in = false;
  bool has_out = false;
  std::size_t in_offset = 0;
  std::size_t out_offset = 0;
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_from = {};
};

/// Whether values only move, so that slots may be the device's.
[[nodiscard]] bool only_moves(CollectiveKind kind) noexcept;

/// Elements of one part that a window has room for; the same on all ranks.
[[nodiscard]] std::size_t window_elements(const Collective& whole, const Position& position,
                                          std::size_t slot_bytes) noexcept;

/// Elements of the largest part, as far as this rank knows.
[[nodiscard]] std::size_t largest_part(const Collective& whole) noexcept;

/// Whether ranks may know of different largest parts, and must tell each other.
[[nodiscard]] bool is_largest_part_private(const Collective& whole) noexcept;

/// The window with elements [begin, begin + elements) of each part, of a collective that is right.
/// The window borrows from `whole`. In and out are in place in the slot, but those of an
/// all-to-all: in slots of the device it has nothing for the rank itself, whose part only goes down
/// and up.
void write_window(const Collective& whole, const Position& position, std::size_t begin,
                  std::size_t elements, const SlotShape& slot, Window& to);

}  // namespace hocket::device
