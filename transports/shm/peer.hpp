// Another rank of this host: its board, our ring of notes for it, the pipe that wakes it (its
// bell), and whether its process lives.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "transports/common/lane_set.hpp"
#include "transports/common/ring.hpp"
#include "transports/shm/address.hpp"
#include "transports/shm/board.hpp"

namespace hocket::shm {

struct Channel;

/// The failure for a rank that has left or died; `how` is what comes behind "rank 3".
[[nodiscard]] Status peer_lost(std::uint32_t rank, std::string_view how);

/// A channel as the peer's notes have it.
struct Incoming {
  Channel* channel = nullptr;  // null: nobody wants what comes
  Reading* reading = nullptr;  // null: no such channel
  std::uint32_t done = 0;
  std::uint32_t told = 0;  // of them, as `reading` says
  /// Of the oldest note that is lent, and of all behind it: 1 for lent, 0 for done.
  common::Ring<std::uint8_t> lent = {};
};

class Peer {
 public:
  struct Expected {
    std::uint32_t rank = 0;  // the peer's
    std::uint32_t reader = 0;
    std::uint32_t size = 1;
    std::uint64_t epoch = 0;
  };
  /// Opens its board, and tells it so. peer_lost where that is not there any more; mismatch where
  /// it is of another epoch or world.
  [[nodiscard]] static Result<Fd> hold(const Address& address, const Expected& expected);
  /// Begins to read the board that hold() opened, and takes it if that succeeds. `own` is what this
  /// rank says to the peer.
  [[nodiscard]] static Result<Peer> reach(Fd& board, const Address& address,
                                          const Expected& expected, Pair& own);

  [[nodiscard]] std::uint32_t rank() const noexcept { return rank_; }
  [[nodiscard]] Header& header() const noexcept { return view_.header(); }
  /// Readable once its process has ended; -1 if it had ended before.
  [[nodiscard]] int process() const noexcept { return process_.get(); }

  // What it says.
  /// The oldest note that was not dropped; null if there is none.
  [[nodiscard]] const Note* front() const noexcept {
    const Note& note = theirs_->notes[read_ % notes_kept];
    return note.turn.load(std::memory_order_acquire) == read_ + 1 ? &note : nullptr;
  }
  void drop() noexcept { ++read_; }
  /// Notes that were dropped, which it does not know yet.
  [[nodiscard]] std::uint32_t untold() const noexcept { return read_ - told_; }
  /// It may write over what was dropped.
  void tell_read() noexcept {
    told_ = read_;
    theirs_->read.store(read_, std::memory_order_release);
  }
  [[nodiscard]] std::byte* at(Offset offset, std::size_t bytes) noexcept {
    return view_.at(file_.get(), offset, bytes);
  }

  // What we say.
  /// The note to write next; null while there is no room.
  [[nodiscard]] Note* room() noexcept {
    if (written_ - their_read_ == notes_kept) {
      their_read_ = ours_->read.load(std::memory_order_acquire);
      if (written_ - their_read_ == notes_kept) return nullptr;
    }
    return &ours_->notes[written_ % notes_kept];
  }
  /// Returns its number.
  std::uint32_t publish(Note& note) noexcept {
    note.turn.store(++written_, std::memory_order_release);
    return written_;
  }
  [[nodiscard]] bool has_read(std::uint32_t note) noexcept {
    their_read_ = ours_->read.load(std::memory_order_acquire);
    return static_cast<std::int32_t>(their_read_ - note) >= 0;
  }
  /// After a fence that orders it behind what was written: wakes it if it sleeps.
  void ring() noexcept;

  Status lost = {};                     // why it is, if it is
  bool is_dirty = false;                // it is to be rung
  std::uint32_t closed_seen = 0;        // of its ranges of lanes
  common::LaneSet their_closed = {};    // lanes that it has closed
  std::vector<Incoming> incoming = {};  // by its numbers

 private:
  Peer() noexcept = default;

  std::uint32_t rank_ = 0;
  Fd file_;
  Fd bell_;
  Fd process_;
  BoardView view_;
  Pair* theirs_ = nullptr;  // on its board: to us
  Pair* ours_ = nullptr;    // on ours: to it
  std::uint32_t read_ = 0;
  std::uint32_t told_ = 0;
  std::uint32_t written_ = 0;
  std::uint32_t their_read_ = 0;
};

}  // namespace hocket::shm
