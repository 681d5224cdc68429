// Records what this rank does, always: its last operations, how far they are and whom they wait for
// (layout.hpp). To record an operation takes a few nanoseconds, no lock and no system call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "record/layout.hpp"

namespace hocket::record {

struct RecorderOptions {
  std::uint64_t world = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string_view host = {};
  std::string_view transport = {};
  /// Where to keep the file, so that it outlives the process. Empty: nowhere; then it can be read
  /// as long as the process lives.
  std::string_view folder = {};
};

class Recorder {
 public:
  /// Fails where there is no memory, or no such folder.
  [[nodiscard]] static Result<std::unique_ptr<Recorder>> open(const RecorderOptions& options);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  /// The rank has left its world in order.
  ~Recorder();

  // One thread at a time may call these: whoever has the engine's lock.

  struct Operation {
    std::uint8_t kind = 0;
    std::uint32_t communicator = 0;
    std::uint64_t number = 0;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
    std::uint32_t peer = nobody;
    Instant begun = {};
    State state = State::running;
  };
  /// Returns its sequence number, by which the functions below know it. They do nothing for an
  /// operation that so many have followed that its entry is another one's now, or for 0.
  std::uint64_t begin(const Operation& operation) noexcept {
    const std::uint64_t sequence = ++header().begun;
    Entry& entry = at(sequence);
    const std::atomic_ref<std::uint64_t> mark(entry.sequence);
    mark.store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    entry.number = operation.number;
    entry.tag = operation.tag;
    entry.bytes = operation.bytes;
    entry.begun = operation.begun.time_since_epoch().count();
    entry.arrived = 0;
    entry.ended = 0;
    entry.communicator = operation.communicator;
    entry.peer = operation.peer;
    entry.step = 0;
    entry.kind = operation.kind;
    entry.state = operation.state;
    mark.store(sequence, std::memory_order_release);
    return sequence;
  }
  /// A queued operation runs now.
  void start(std::uint64_t sequence) noexcept {
    if (has(sequence)) at(sequence).state = State::running;
  }
  void note_arrival(std::uint64_t sequence, Instant now) noexcept {
    if (has(sequence)) at(sequence).arrived = now.time_since_epoch().count();
  }
  void note_wait(std::uint64_t sequence, std::uint32_t step, std::uint32_t peer) noexcept {
    if (!has(sequence)) return;
    at(sequence).step = step;
    at(sequence).peer = peer;
  }
  void end(std::uint64_t sequence, Instant now, bool is_done) noexcept {
    if (!has(sequence)) return;
    Entry& entry = at(sequence);
    entry.ended = now.time_since_epoch().count();
    entry.state = is_done ? State::done : State::failed;
    Total& total = header().totals[entry.kind % kinds_max];
    ++(is_done ? total.done : total.failed);
    total.bytes += entry.bytes;
    total.nanoseconds += static_cast<std::uint64_t>(entry.ended - entry.begun);
  }

  // Any thread may call these.

  void add_group(std::uint32_t id, std::uint32_t rank, std::uint32_t size) noexcept;
  void remove_group(std::uint32_t id) noexcept;
  /// Only the first one counts.
  void note_failure(std::string_view text) noexcept;

 private:
  Recorder(Fd file, std::byte* memory) noexcept : file_(std::move(file)), memory_(memory) {}

  [[nodiscard]] Header& header() noexcept { return *reinterpret_cast<Header*>(memory_); }
  [[nodiscard]] Entry& at(std::uint64_t sequence) noexcept {
    return reinterpret_cast<Entry*>(memory_ + entries_at)[sequence % entries_kept];
  }
  [[nodiscard]] bool has(std::uint64_t sequence) noexcept {
    return sequence != 0 && at(sequence).sequence == sequence;
  }

  const Fd file_;  // stays open, so that other processes find it
  std::byte* const memory_;
  std::mutex mutex_;  // of the groups and the failure
};

}  // namespace hocket::record
