// What the operations of one communicator share.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "engine/run.hpp"

namespace hocket::engine {

class Mailbox;
struct Parcel;

/// What a group has failed of, and what it was doing.
struct Failure {
  const Status& why;                // with ranks of the group; the step, where one is known
  std::uint64_t tag = 0;            // of the operation that failed, or else of the oldest; 0: none
  const Parcel* message = nullptr;  // that is under way, if there is no operation
  std::uint64_t number = 0;         // of that operation, if its caller has numbered it
  int awaited = -1;                 // for which rank of the group it was waiting
  bool is_second_hand = false;      // another rank has failed, and said why
  std::uint64_t index = 0;          // of the operation among all of its group
  /// The message that did not fit belongs to a later call of its sender. An earlier call differs,
  /// and only the sender knows which.
  bool meets_later_call = false;
};

/// An operation that waits for another rank, longer than it takes to say so.
struct Stall {
  std::uint64_t index = 0;  // of the operation among all of its group
  std::uint64_t tag = 0;
  std::uint64_t number = 0;  // as its caller has numbered it
  std::uint32_t step = 0;    // which waits
  std::uint32_t awaited = 0;
  Duration age = {};  // since the call
};

/// Under the engine's lock: it waits for nothing.
class GroupObserver {
 public:
  virtual ~GroupObserver() = default;
  /// Called once. True: the channels stay open until the observer calls Engine::abort(), which it
  /// does when the other ranks have been told why. Closed channels would tell them less.
  virtual bool on_failure(const Failure& failure) noexcept = 0;
  /// Again and again, as long as it lasts.
  virtual void on_stall(const Stall& stall) noexcept = 0;
};

/// The tags of the last operations, so many. One thread adds, any thread reads.
template <std::uint64_t kept>
class LastCalls {
 public:
  /// Gives its index.
  std::uint64_t add(std::uint64_t tag) noexcept {
    const std::uint64_t index = count_.load(std::memory_order_relaxed);
    tags_[index % kept].store(tag, std::memory_order_release);
    count_.store(index + 1, std::memory_order_release);
    return index;
  }
  /// Whether it has begun.
  [[nodiscard]] bool have_begun(std::uint64_t index) const noexcept {
    return index < count_.load(std::memory_order_acquire);
  }
  /// Nothing if it has not begun, or has been forgotten.
  [[nodiscard]] std::optional<std::uint64_t> at(std::uint64_t index) const noexcept {
    if (!have_begun(index)) return std::nullopt;
    const std::uint64_t tag = tags_[index % kept].load(std::memory_order_acquire);
    if (index + kept <= count_.load(std::memory_order_acquire)) return std::nullopt;
    return tag;
  }
  /// What this rank called after the same earlier calls as another rank its call with this tag.
  /// The newest such call, because histories that differ may have the same digest. Nothing if none
  /// is known, or if it is the same call.
  [[nodiscard]] std::optional<std::uint64_t> in_place_of(std::uint64_t theirs) const noexcept {
    const std::uint64_t count = count_.load(std::memory_order_acquire);
    for (std::uint64_t back = 1; back <= std::min(count, kept); ++back) {
      const std::uint64_t ours = tags_[(count - back) % kept].load(std::memory_order_acquire);
      if (!Tag::have_same_history(ours, theirs)) continue;
      return ours == theirs ? std::nullopt : std::optional(ours);
    }
    return std::nullopt;
  }

 private:
  std::atomic<std::uint64_t> count_ = 0;
  std::array<std::atomic<std::uint64_t>, kept> tags_ = {};
};
using Calls = LastCalls<64>;

/// Whether the failure is the reason for which another rank closed a channel (reason.cpp).
[[nodiscard]] bool is_told_by_peer(const Status& failure) noexcept;

/// They begin in the order in which they were issued, so many at once as `overlap` says. Those that
/// are under way together have different banks of channels (their index modulo `overlap`): on one
/// channel all messages of one come before those of the next. When one fails, so do all.
struct Group {
  /// All that it may ever open channels on; without them, close() can't reach peers that dial late.
  struct Lanes {
    std::uint64_t first = 1;
    std::uint64_t last = 0;
  };
  Lanes lanes = {};
  std::uint64_t record_id = 0;  // of the communicator, for the recorder
  /// Of the world, by rank of the group; empty: the same.
  std::span<const std::uint32_t> members = {};
  std::vector<ChannelId> channels = {};
  std::uint32_t overlap = 1;     // at most 64, the bits of `ended`
  std::uint32_t room = overlap;  // how many more may begin now
  std::uint64_t oldest = 0;  // index of the oldest that is not over, if several may be under way
  std::uint64_t ended = 0;   // of those from there on, a bit each
  std::vector<Task> queue = {};  // those that have not begun
  std::size_t queue_head = 0;
  Tag::History history = {};  // of the operations that have begun
  Calls calls = {};
  Mailbox* mailbox = nullptr;  // if its ranks send each other messages
  Status failure = {};
  bool stays_open = false;  // its channels, until its observer aborts it, though it has failed
  GroupObserver* observer = nullptr;
  int accused = -1;  // this rank's own number, once another rank has failed because of it

  /// The end of an operation that had begun.
  void end(std::uint64_t index) noexcept {
    if (overlap > 1) return end_among_others(index);
    ++room;
  }
  void end_among_others(std::uint64_t index) noexcept;

  // Of Engine::abort().
  Status abort = {};
  Group* next_aborted = nullptr;

  /// `why` with its peer as a rank of the world, for the transport. What this rank was accused of
  /// is passed on as it came.
  [[nodiscard]] Status in_world(const Status& why) const noexcept;
  /// `why`, from the transport, with its peer as a rank of the group: `peer`, with whom the
  /// exchange was, if `why` names this rank, nobody, or a rank outside the group.
  [[nodiscard]] Status in_group(Status why, std::uint32_t rank, std::uint32_t peer) noexcept;
};

}  // namespace hocket::engine
