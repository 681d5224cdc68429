// A rank's board: memory in a file without a name, which all ranks of its host hold open, and those
// that it talks to map as well. The rank writes its notes there, in a ring for each other rank, and
// the data of messages that do not fit into a note in slots beside. The others write only how far
// they have read, that they read, and that they wake the rank.
//
// A note is one cache line, so that a small message costs its reader one miss.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "transports/common/ring.hpp"

namespace hocket::shm {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint32_t notes_kept = 256;  // in a ring: a power of two
inline constexpr std::size_t inline_bytes_max = 40;
/// Of a message in one slot.
inline constexpr std::size_t slot_bytes_max = 256 << 10;
/// The reader takes one part while the writer copies the next one into the slot.
[[nodiscard]] constexpr std::size_t part_bytes_max(std::uint64_t of_message) noexcept {
  return of_message <= (64 << 10) ? 16 << 10 : 32 << 10;
}
inline constexpr std::size_t chunk_bytes = 1 << 20;
/// The last ranges of lanes that the rank has closed.
inline constexpr std::uint32_t closed_kept = 1024;

inline constexpr std::array<char, 8> board_mark = {'h', 'o', 'c', 'k', 's', 'h', 'm', '1'};

/// Where something is, in bytes from the board's beginning.
using Offset = std::uint64_t;

/// Of a channel, that nobody has received yet.
inline constexpr std::uint64_t notes_on_the_way_max = 64;
inline constexpr std::uint64_t bytes_on_the_way_max = 1 << 20;
/// To say that a note is read costs as much as a note. So the writer is told of many at once,
/// before it would have to wait.
inline constexpr std::uint32_t notes_untold_max = notes_kept / 4;
inline constexpr std::uint32_t parts_untold_max = notes_on_the_way_max / 4;

/// Others see what was written before, if they have not yet written what is read after it.
inline void order_all() noexcept {
#ifdef __SANITIZE_THREAD__  // g++ refuses fences there
  static std::atomic<int> any = 0;
  any.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

struct alignas(line_bytes) Note {
  enum class Kind : std::uint8_t {
    open,   // a channel: `tag` is its lane, `offset` where its Reading is
    part,   // of a message
    close,  // the channel; `tag` is the reason (pack_reason)
  };

  std::atomic<std::uint32_t> turn = 0;  // one more than its number, once it is written
  Kind kind = Kind::open;
  bool is_last = false;  // part of a message
  bool is_inline = false;
  bool is_in_one_slot = false;  // the whole message, part behind part
  std::uint32_t channel = 0;    // its writer's number of it
  std::uint32_t bytes = 0;
  std::uint64_t tag = 0;
  union {
    std::array<std::byte, inline_bytes_max> data = {};
    Offset offset;
  };
};
static_assert(sizeof(Note) == line_bytes);

/// How many notes of a channel, but for `open`, its reader is done with, and with what they point
/// to. Written by the reader, on the writer's board.
struct alignas(line_bytes) Reading {
  std::atomic<std::uint32_t> done = 0;
};

/// What the rank says to one other.
struct Pair {
  alignas(line_bytes) std::atomic<std::uint32_t> read = 0;  // notes, as the reader says
  std::array<Note, notes_kept> notes = {};
};

/// A copy of a note, whose writer may change it while it is looked at.
struct Heard {
  explicit Heard(const Note& note) noexcept
      : kind(note.kind),
        is_last(note.is_last),
        is_inline(note.is_inline),
        is_in_one_slot(note.is_in_one_slot),
        channel(note.channel),
        bytes(note.bytes),
        tag(note.tag),
        data(note.data) {
    std::memcpy(&offset, data.data(), sizeof offset);
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  Note::Kind kind;
  bool is_last;
  bool is_inline;
  bool is_in_one_slot;
  std::uint32_t channel;
  std::uint32_t bytes;
  std::uint64_t tag;
  Offset offset = 0;
  std::array<std::byte, inline_bytes_max> data;
};

/// What another rank has of the board, as it says itself.
enum class Hold : std::uint8_t {
  nothing,
  file,     // so that it can read the board even if its rank has ended
  mapping,  // it reads
};

struct ClosedLanes {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint64_t reason = 0;
};

struct Header {
  std::array<char, 8> mark;
  std::array<std::uint64_t, 2> secret;  // by which a reader knows that it is the board it looks for
  std::uint64_t epoch;
  std::uint32_t rank;
  std::uint32_t size;
  /// The rank sleeps: whoever has something for it takes this back and rings.
  alignas(line_bytes) std::atomic<std::uint32_t> is_asleep;
  alignas(line_bytes) std::atomic<std::uint32_t> closed_count;  // ranges of lanes, ever
  std::atomic<std::uint32_t> has_left;
  alignas(line_bytes) std::atomic<std::uint32_t> readers;  // ranks that have begun to read
  alignas(line_bytes) std::array<ClosedLanes, closed_kept> closed;
};

/// Memory of a file, mapped; a child made by fork() does not have it.
class Mapping {
 public:
  Mapping() noexcept = default;
  [[nodiscard]] static Result<Mapping> make(int file, std::uint64_t offset, std::size_t bytes);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The parts of a board that every one has: a header, what each rank holds of the board, and a pair
/// for each. Behind them come chunks, as they are needed.
class BoardView {
 public:
  BoardView() noexcept = default;
  [[nodiscard]] static Result<BoardView> make(int file, std::uint32_t size);

  [[nodiscard]] Header& header() const noexcept { return *reinterpret_cast<Header*>(base_.data()); }
  [[nodiscard]] std::atomic<Hold>& hold(std::uint32_t reader) const noexcept;
  [[nodiscard]] Pair& pair(std::uint32_t reader) const noexcept;
  [[nodiscard]] static std::size_t base_bytes(std::uint32_t size) noexcept;

  /// Maps the chunk that this is in, at its first use. Null where there is no such place, or no
  /// memory for it.
  [[nodiscard]] std::byte* at(int file, Offset offset, std::size_t bytes) noexcept;

 private:
  Mapping base_;
  std::uint32_t size_ = 0;
  std::vector<Mapping> chunks_;
};

/// This rank's own.
class Board {
 public:
  struct Options {
    std::uint64_t epoch = 0;
    std::uint32_t rank = 0;
    std::uint32_t size = 1;
    std::array<std::uint64_t, 2> secret = {};
  };
  [[nodiscard]] static Result<Board> make(const Options& options);
  Board() noexcept = default;
  Board(Board&&) noexcept = default;
  Board& operator=(Board&&) noexcept = default;

  [[nodiscard]] Header& header() const noexcept { return view_.header(); }
  [[nodiscard]] Hold hold(std::uint32_t reader) const noexcept {
    return view_.hold(reader).load(std::memory_order_acquire);
  }
  [[nodiscard]] Pair& pair(std::uint32_t reader) const noexcept { return view_.pair(reader); }
  [[nodiscard]] int file() const noexcept { return file_.get(); }

  /// Room for data of at most slot_bytes_max.
  struct Slot {
    std::byte* data = nullptr;
    Offset offset = 0;
    std::uint8_t size_class = 0;
  };
  /// Throws std::bad_alloc.
  [[nodiscard]] Slot take(std::size_t bytes);
  void give_back(const Slot& slot) noexcept;

  void note_closed(const ClosedLanes& lanes) noexcept;

 private:
  static constexpr std::size_t classes = 13;  // 64 bytes, twice as much, …, slot_bytes_max
  /// Slots of one size that are free.
  struct SizeClass {
    /// Those that were given back last, as many as take turns; the oldest first.
    common::Ring<Slot> in_turn = {};
    std::vector<Slot> spare = {};
    std::size_t carved = 0;  // ever
  };
  [[nodiscard]] static std::uint8_t class_of(std::size_t bytes) noexcept;
  [[nodiscard]] Slot carve(std::uint8_t size_class);

  Fd file_;
  BoardView view_;
  std::uint64_t end_ = 0;   // of the file
  std::uint64_t next_ = 0;  // the place of what is carved next, from the last chunk
  std::array<SizeClass, classes> free_;
};

}  // namespace hocket::shm
