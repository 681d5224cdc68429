#include "device/windows.hpp"

#include <algorithm>
#include <numeric>

namespace hocket::device {
namespace {

std::byte* bytes_of(const void* memory) noexcept {
  return static_cast<std::byte*>(const_cast<void*>(memory));
}

bool has_parts(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::reduce_scatter || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::gather || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::all_to_all;
}

/// Writes one window.
class Cutter {
 public:
  Cutter(const Collective& whole, const Position& position, std::size_t begin, std::size_t elements,
         Window& window)
      : whole_(whole), position_(position), begin_(begin), elements_(elements), window_(window) {}

  void cut(const SlotShape& slot) {
    Window& to = window_;
    to.down.clear();
    to.up.clear();
    to.counts.clear();
    to.counts_from.clear();
    to.in_offset = to.out_offset = 0;
    to.has_in = to.has_out = true;
    to.collective = whole_;
    to.collective.pieces = {};
    to.collective.options = {};
    if (slot.place == SlotPlace::device) to.collective.options.memory = MemoryKind::device;
    to.collective.count = length(whole_.count);
    for (const std::size_t each : whole_.counts) to.counts.push_back(length(each));
    for (const std::size_t each : whole_.counts_from) to.counts_from.push_back(length(each));
    if (has_parts(whole_.kind)) {
      cut_parts(slot);
    } else if (whole_.kind != CollectiveKind::barrier) {
      cut_vector();
    }
    to.collective.counts = to.counts;
    to.collective.counts_from = to.counts_from;
  }

 private:
  [[nodiscard]] bool is_root() const noexcept {
    return position_.rank == static_cast<std::uint32_t>(whole_.root);
  }
  [[nodiscard]] std::size_t element_bytes() const noexcept { return size_of(whole_.type); }
  /// Of a part of so many elements, how many the window has.
  [[nodiscard]] std::size_t length(std::size_t part) const noexcept {
    return part > begin_ ? std::min(part - begin_, elements_) : 0;
  }

  void cut_vector() {
    const CollectiveKind kind = whole_.kind;
    const bool gives = kind != CollectiveKind::broadcast || is_root();
    const bool gets = (kind != CollectiveKind::reduce || is_root()) &&
                      (kind != CollectiveKind::exscan || position_.rank > 0);
    if (!whole_.pieces.empty()) return cut_pieces(gives);
    const Block block = {.slot_offset = 0, .row_bytes = length(whole_.count) * element_bytes()};
    if (block.row_bytes == 0) return;
    if (gives) add(window_.down, block, bytes_of(whole_.in) + begin_ * element_bytes());
    const bool is_there = kind == CollectiveKind::broadcast && gives && whole_.in == whole_.out;
    if (gets && !is_there) {
      add(window_.up, block, bytes_of(whole_.out) + begin_ * element_bytes());
    }
    window_.has_out = gets;
  }

  void cut_pieces(bool gives) {
    const bool gets = whole_.kind == CollectiveKind::all_reduce || !gives;
    std::size_t first = 0;  // of the piece, in the vector
    const std::size_t end = begin_ + length(whole_.count);
    for (const Piece& each : whole_.pieces) {
      const std::size_t from = std::max(first, begin_);
      const std::size_t to = std::min(first + each.count, end);
      if (from < to) {
        const Block block = {.slot_offset = (from - begin_) * element_bytes(),
                             .row_bytes = (to - from) * element_bytes()};
        std::byte* const user = bytes_of(each.data) + (from - first) * element_bytes();
        if (gives) add(window_.down, block, user);
        if (gets) add(window_.up, block, user);
      }
      first += each.count;
    }
  }

  void cut_parts(const SlotShape& slot) {
    const CollectiveKind kind = whole_.kind;
    const bool is_rooted = kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
    const bool gathers = kind == CollectiveKind::all_gather || kind == CollectiveKind::gather;
    if (kind == CollectiveKind::all_to_all) return cut_exchange(slot);
    const bool has_all = !is_rooted || is_root();
    const std::size_t own_offset = has_all ? offset_in_slot(position_.rank) : 0;
    const std::size_t own = whole_.counts.empty() ? whole_.count : whole_.counts[position_.rank];
    const Block part = {.slot_offset = own_offset, .row_bytes = length(own) * element_bytes()};
    std::vector<Block>& parts = gathers ? window_.up : window_.down;
    std::vector<Block>& single = gathers ? window_.down : window_.up;
    const void* const larger = gathers ? whole_.out : whole_.in;
    const void* const smaller = gathers ? whole_.in : whole_.out;
    if (has_all) add_parts(parts, larger, whole_.counts, 0);
    if (part.row_bytes > 0) add(single, part, bytes_of(smaller) + begin_ * element_bytes());
    (gathers ? window_.in_offset : window_.out_offset) = own_offset;
    (gathers ? window_.has_out : window_.has_in) = has_all;
  }

  void cut_exchange(const SlotShape& slot) {
    window_.out_offset = slot.bytes / 2;
    std::size_t own_offset = in_line;
    if (slot.place == SlotPlace::device) own_offset = leave_own_part();
    add_parts(window_.down, whole_.in, whole_.counts, 0, own_offset);
    add_parts(window_.up, whole_.out, whole_.counts_from, window_.out_offset, own_offset);
  }

  /// The exchange has parts for others only. Where the own one goes instead: behind those.
  std::size_t leave_own_part() {
    const auto leave = [&](std::vector<std::size_t>& counts) {
      if (counts.empty()) counts.assign(position_.size, length(whole_.count));
      counts[position_.rank] = 0;
    };
    leave(window_.counts);
    leave(window_.counts_from);
    return std::accumulate(window_.counts.begin(), window_.counts.end(), std::size_t{}) *
           element_bytes();
  }

  [[nodiscard]] std::size_t offset_in_slot(std::uint32_t rank) const noexcept {
    if (whole_.counts.empty()) return rank * length(whole_.count) * element_bytes();
    std::size_t before = 0;
    for (std::uint32_t i = 0; i < rank; ++i) before += length(whole_.counts[i]);
    return before * element_bytes();
  }

  static constexpr std::size_t in_line = SIZE_MAX;

  /// Of every rank, behind each other; the own one may have a place apart.
  void add_parts(std::vector<Block>& to, const void* user, std::span<const std::size_t> counts,
                 std::size_t slot_offset, std::size_t own_offset = in_line) {
    const std::uint32_t own = position_.rank;
    if (counts.empty() && own_offset == in_line) {
      return add_rows(to, user, 0, position_.size, slot_offset);
    }
    if (counts.empty()) {
      const std::size_t before = own * length(whole_.count) * element_bytes();
      add_rows(to, user, 0, own, slot_offset);
      add_rows(to, user, own, 1, own_offset);
      return add_rows(to, user, own + 1, position_.size - own - 1, slot_offset + before);
    }
    std::byte* from = bytes_of(user) + begin_ * element_bytes();
    for (std::uint32_t i = 0; i < counts.size(); ++i) {
      const std::size_t bytes = length(counts[i]) * element_bytes();
      const bool is_apart = i == own && own_offset != in_line;
      const Block part = {.slot_offset = is_apart ? own_offset : slot_offset, .row_bytes = bytes};
      if (bytes > 0) add(to, part, from);
      if (!is_apart) slot_offset += bytes;
      from += counts[i] * element_bytes();
    }
  }

  /// Parts of one size.
  void add_rows(std::vector<Block>& to, const void* user, std::uint32_t first, std::uint32_t count,
                std::size_t slot_offset) {
    const std::size_t pitch = whole_.count * element_bytes();
    const Block rows = {.user_pitch = pitch,
                        .slot_offset = slot_offset,
                        .row_bytes = length(whole_.count) * element_bytes(),
                        .rows = count};
    if (rows.row_bytes == 0 || count == 0) return;
    add(to, rows, bytes_of(user) + first * pitch + begin_ * element_bytes());
  }

  static void add(std::vector<Block>& to, Block block, std::byte* user) {
    block.user = user;
    if (block.rows > 1 && block.user_pitch == block.row_bytes) {
      block.row_bytes *= block.rows;
      block.rows = 1;
    }
    to.push_back(block);
  }

  const Collective& whole_;
  const Position position_;
  const std::size_t begin_;
  const std::size_t elements_;
  Window& window_;
};

}  // namespace

bool only_moves(CollectiveKind kind) noexcept {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter || kind == CollectiveKind::all_gather ||
         kind == CollectiveKind::all_to_all;
}

std::size_t window_elements(const Collective& whole, const Position& position,
                            std::size_t slot_bytes) noexcept {
  std::size_t bytes = slot_bytes / size_of(whole.type);
  if (has_parts(whole.kind)) bytes /= position.size;
  if (whole.kind == CollectiveKind::all_to_all) bytes /= 2;
  return std::max<std::size_t>(bytes, 1);
}

std::size_t largest_part(const Collective& whole) noexcept {
  std::size_t most = whole.counts.empty() ? whole.count : 0;
  for (const std::size_t each : whole.counts) most = std::max(most, each);
  for (const std::size_t each : whole.counts_from) most = std::max(most, each);
  return most;
}

bool is_largest_part_private(const Collective& whole) noexcept {
  return whole.kind == CollectiveKind::all_to_all && !whole.counts.empty();
}

void write_window(const Collective& whole, const Position& position, std::size_t begin,
                  std::size_t elements, const SlotShape& slot, Window& to) {
  Cutter(whole, position, begin, elements, to).cut(slot);
}

}  // namespace hocket::device
