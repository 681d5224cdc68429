#include "transports/shm/board.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transports/common/channel_table.hpp"

namespace hocket::shm {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t smallest_slot = line_bytes;

/// To write to a slot takes longer when its reader has just read it. So slots of this size and more
/// take turns, with so many bytes of each size.
constexpr std::size_t turns_from = 8 << 10;
constexpr std::size_t turns_bytes = 256 << 10;

constexpr std::size_t slot_bytes(std::uint8_t size_class) noexcept {
  return smallest_slot << size_class;
}

/// How many slots of a size take turns.
constexpr std::size_t slots_in_turn(std::uint8_t size_class) noexcept {
  const std::size_t bytes = slot_bytes(size_class);
  return bytes < turns_from ? 1 : std::max<std::size_t>(turns_bytes / bytes, 2);
}

constexpr std::size_t rounded_up(std::size_t bytes, std::size_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

std::size_t head_bytes(std::uint32_t size) noexcept {
  return rounded_up(sizeof(Header) + size * sizeof(std::atomic<Hold>), page_bytes);
}

Status no_memory(int error) {
  return Status(error == ENOMEM || error == ENOSPC ? StatusCode::limit_exceeded
                                                   : StatusCode::system_error,
                "no memory to share with other ranks")
      .with_system_error(error);
}

}  // namespace

Result<Mapping> Mapping::make(int file, std::uint64_t offset, std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  if (memory == MAP_FAILED) return no_memory(errno);
  ::madvise(memory, bytes, MADV_DONTFORK);
  Mapping made;
  made.data_ = static_cast<std::byte*>(memory);
  made.bytes_ = bytes;
  return made;
}

Mapping::~Mapping() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

std::size_t BoardView::base_bytes(std::uint32_t size) noexcept {
  return head_bytes(size) + rounded_up(size * sizeof(Pair), page_bytes);
}

Result<BoardView> BoardView::make(int file, std::uint32_t size) {
  auto base = Mapping::make(file, 0, base_bytes(size));
  if (!base.ok()) return base.status();
  BoardView view;
  view.base_ = *std::move(base);
  view.size_ = size;
  return view;
}

std::atomic<Hold>& BoardView::hold(std::uint32_t reader) const noexcept {
  return reinterpret_cast<std::atomic<Hold>*>(base_.data() + sizeof(Header))[reader];
}

Pair& BoardView::pair(std::uint32_t reader) const noexcept {
  return reinterpret_cast<Pair*>(base_.data() + head_bytes(size_))[reader];
}

std::byte* BoardView::at(int file, Offset offset, std::size_t bytes) noexcept {
  const std::size_t base = base_bytes(size_);
  if (offset < base || offset % line_bytes != 0) return nullptr;
  const std::size_t chunk = (offset - base) / chunk_bytes;
  const std::size_t in_chunk = (offset - base) % chunk_bytes;
  if (in_chunk + bytes > chunk_bytes) return nullptr;
  if (chunk >= chunks_.size() || chunks_[chunk].data() == nullptr) {
    struct stat status = {};
    const std::uint64_t end = base + (chunk + 1) * chunk_bytes;
    if (::fstat(file, &status) != 0 || static_cast<std::uint64_t>(status.st_size) < end) {
      return nullptr;
    }
    try {
      if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
      auto made = Mapping::make(file, end - chunk_bytes, chunk_bytes);
      if (!made.ok()) return nullptr;
      chunks_[chunk] = *std::move(made);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  return chunks_[chunk].data() + in_chunk;
}

/// The file can grow, but not shrink: else whoever has mapped it could be killed by a signal.
Result<Board> Board::make(const Options& options) {
  Board made;
  made.file_ = Fd::open_unforked(
      [] { return ::memfd_create("hocket-board", MFD_CLOEXEC | MFD_ALLOW_SEALING); });
  if (!made.file_) return no_memory(errno);
  made.end_ = made.next_ = BoardView::base_bytes(options.size);
  if (::fchmod(made.file(), 0600) != 0 ||
      ::ftruncate(made.file(), static_cast<off_t>(made.end_)) != 0 ||
      ::fcntl(made.file(), F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return no_memory(errno);
  }
  auto view = BoardView::make(made.file(), options.size);
  if (!view.ok()) return view.status();
  made.view_ = *std::move(view);
  Header& header = made.header();
  header.mark = board_mark;
  header.secret = options.secret;
  header.epoch = options.epoch;
  header.rank = options.rank;
  header.size = options.size;
  return made;
}

std::uint8_t Board::class_of(std::size_t bytes) noexcept {
  const std::size_t rounded = std::bit_ceil(std::max(bytes, smallest_slot));
  return static_cast<std::uint8_t>(std::countr_zero(rounded) - std::countr_zero(smallest_slot));
}

Board::Slot Board::take(std::size_t bytes) {
  const std::uint8_t size_class = class_of(bytes);
  SizeClass& slots = free_.at(size_class);
  const std::size_t turns = slots_in_turn(size_class);
  if (slots.in_turn.size() < turns && !slots.spare.empty()) {
    const Slot slot = slots.spare.back();
    slots.spare.pop_back();
    return slot;
  }
  const bool must_grow = slots.carved < turns;
  if (!slots.in_turn.empty() && !must_grow) return slots.in_turn.pop();
  try {
    return carve(size_class);
  } catch (const std::bad_alloc&) {
    if (slots.in_turn.empty()) throw;
    return slots.in_turn.pop();
  }
}

/// With room in its list for it to come back.
Board::Slot Board::carve(std::uint8_t size_class) {
  const std::size_t bytes = slot_bytes(size_class);
  next_ = rounded_up(next_, std::min(bytes, page_bytes));
  if (next_ + bytes > end_) {
    // Reserved, so that a full machine is an error here and no signal later.
    int error = EINTR;
    while (error == EINTR) {
      error = ::posix_fallocate(file(), static_cast<off_t>(end_), chunk_bytes);
    }
    if (error != 0) throw std::bad_alloc();
    next_ = end_;
    end_ += chunk_bytes;
  }
  std::byte* const data = view_.at(file(), next_, bytes);
  if (data == nullptr) throw std::bad_alloc();
  SizeClass& slots = free_.at(size_class);
  slots.in_turn.reserve(slots_in_turn(size_class));
  common::make_room_in(slots.spare, slots.carved + 1);
  ++slots.carved;
  const Slot slot = {.data = data, .offset = next_, .size_class = size_class};
  next_ += bytes;
  return slot;
}

void Board::give_back(const Slot& slot) noexcept {
  SizeClass& slots = free_.at(slot.size_class);
  if (slots.in_turn.size() == slots_in_turn(slot.size_class))
    slots.spare.push_back(slots.in_turn.pop());
  slots.in_turn.push(slot);
}

void Board::note_closed(const ClosedLanes& lanes) noexcept {
  const std::uint32_t count = header().closed_count.load(std::memory_order_relaxed);
  header().closed.at(count % closed_kept) = lanes;
  header().closed_count.store(count + 1, std::memory_order_release);
}

}  // namespace hocket::shm
