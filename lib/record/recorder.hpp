// Records the last operations of this rank, their progress, and the rank that each waits for
// (layout.hpp). To record an operation takes 7 ns, no lock and no system call.
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

/// The name of this host in the records.
[[nodiscard]] std::string host_name();

/// What HOCKET_TRACE says.
struct Wish {
  bool is_on = true;
  std::string folder = {};  // empty: in memory
};
[[nodiscard]] Wish parse_wish(std::string_view text);

/// Other processes see what was stored before this call before they see what is stored after it.
inline void order_stores() noexcept {
#ifdef __SANITIZE_THREAD__  // g++ refuses fences there; the sanitizer sees this process only
  std::atomic_signal_fence(std::memory_order_release);
#else
  std::atomic_thread_fence(std::memory_order_release);
#endif
}

struct RecorderOptions {
  std::uint64_t world = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  std::string_view transport = {};
  /// The folder for the file, which then outlives the process. It is made if it is not there.
  /// Empty: the records can only be read as long as the process lives.
  std::string_view folder = {};
};

class Recorder {
 public:
  /// Fails where there is no memory, or the folder can't be used.
  [[nodiscard]] static Result<std::unique_ptr<Recorder>> open(const RecorderOptions& options);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  /// The rank has left its world in order.
  ~Recorder();

  // One thread at a time may call these: whoever has the engine's lock (Engine::begin_record).

  struct Operation {
    std::uint8_t kind = 0;
    std::uint64_t communicator = 0;
    std::uint64_t number = 0;
    std::uint64_t tag = 0;
    std::uint64_t bytes = 0;
    std::uint32_t peer = nobody;
    Instant begun = {};
    State state = State::running;
  };
  /// Returns the sequence number that identifies the operation in the calls below. These do nothing
  /// for 0, or if a later operation has reused the entry.
  std::uint64_t begin(const Operation& operation) noexcept {
    const std::uint64_t sequence = ++header().operation_count;
    Entry& entry = at(sequence);
    const std::atomic_ref<std::uint64_t> mark(entry.sequence);
    mark.store(0, std::memory_order_relaxed);
    order_stores();
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
    if (is_done && entry.kind < kind_send) entry.peer = nobody;
    Total& total = header().totals[entry.kind % kinds_max];
    ++(is_done ? total.done : total.failed);
    total.bytes += entry.bytes;
    total.nanoseconds += static_cast<std::uint64_t>(entry.ended - entry.begun);
  }

  // Any thread may call these.

  /// If there is no room for the group, readers do not know it.
  void add_group(std::uint64_t id, std::uint32_t rank, std::uint32_t size) noexcept;
  void remove_group(std::uint64_t id) noexcept;
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
