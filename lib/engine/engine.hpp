// Keeps operations moving for all threads of a process. The thread that waits does the work itself;
// where several wait, one of them, the leader, does it for all. A thread of our own leads when
// operations are under way and nobody waits; and once a group has ended, it leads whenever nobody
// has for a while, asleep, so that ranks that still dial this one for that group are told.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "engine/executor.hpp"
#include "engine/patience.hpp"

namespace hocket::engine {

struct EngineOptions {
  ExecutorOptions executor = {};
  /// How long a leader looks again and again before it sleeps, at most (patience.hpp).
  Duration spin = std::chrono::microseconds(100);
  /// Whether more ranks run on this host than it has processors: then a leader lets others run each
  /// time that it has looked.
  bool shares_processors = false;
  /// Messages that are started right behind each other come with less than this between them.
  Duration burst_pause = std::chrono::microseconds(2);
};

/// Any thread may call anything. Where memory or threads run out while an operation is begun or
/// moved on, its group fails, and the operation with it; functions that may throw say so.
class Engine {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Engine>> make(std::unique_ptr<Transport> transport,
                                                            const EngineOptions& options = {});
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  /// Operations that are not over fail.
  ~Engine();

  /// Begins an operation that wait() is called for at once.
  void start(const Task& task) noexcept;
  /// Begins an operation and keeps it moving.
  void start_in_background(const Task& task) noexcept;

  // Messages between the ranks of a group, as operations: a mailbox is the group's until close().
  // The first two throw without memory; the group must be failed then.
  void attach(Group& group, Mailbox& mailbox);
  [[nodiscard]] Status open_mail(Group& group, std::uint32_t peer, std::uint32_t world_rank,
                                 std::uint64_t letters, std::uint64_t payloads);
  void start(Group& group, const Parcel& parcel) noexcept;
  void start_in_background(Group& group, const Parcel& parcel) noexcept;

  /// Until one of the works is over, or the deadline. Whether one is.
  bool wait_any(std::span<const Work* const> works, Deadline deadline = {});
  bool wait(const Work& work, Deadline deadline = {}) {
    const Work* const one = &work;
    return work.is_over() || wait_any({&one, 1}, deadline);
  }
  /// Moves things on once, if nobody else does. Whether the work is over.
  bool test(const Work& work);

  /// Calls this at the end of a work that is under way. The note that the work had goes to
  /// `former`, which the new one must call. Returns false if the work is over.
  bool call_at_end(Work& work, EndNote note, EndNote& former) noexcept;

  void fail(Group& group, const Status& why) noexcept;
  /// As fail(), but returns at once, and does not wait for the lock, which a leader may hold while
  /// it runs a custom op that waits for this caller. Whoever leads does it, or who calls next, or
  /// our own thread. Only the first counts.
  void abort(Group& group, const Status& why) noexcept;
  /// Why the group failed, if it has.
  [[nodiscard]] Status failure_of(const Group& group);
  /// Why the group failed, or which of the peers that mail was opened to is gone, if any. Moves
  /// things on once, if nobody else does.
  [[nodiscard]] Status loss_of(const Group& group);
  /// Those who wait look again: another thread has ended a work that this engine does not run.
  void wake();
  // Records of operations that this engine does not run, as in TimedRecorder.
  [[nodiscard]] std::uint64_t begin_record(const record::Recorder::Operation& operation) noexcept;
  void end_record(std::uint64_t record, bool is_done) noexcept;

  /// This rank's end of a channel, which becomes the group's. Throws without memory; the group must
  /// be failed then.
  [[nodiscard]] Result<ChannelId> open(Group& group, std::uint32_t peer, std::uint64_t lane);
  // As the transport's.
  void register_memory(const RegisteredMemory& memory);
  void deregister_memory(const RegisteredMemory& memory);
  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                              std::span<const std::uint32_t> peers);
  /// Ends the channels of a group that has no operations any more.
  void close(Group& group) noexcept;
  /// The lanes of a group that other ranks have without this one, so that no trace of them is kept.
  void close_lanes(const Group::Lanes& lanes) noexcept;

 private:
  enum class Leader : std::uint8_t { nobody, waiter, background };
  class Entry;

  Engine(std::unique_ptr<Transport> transport, const EngineOptions& options, Fd wake);

  [[nodiscard]] Result<ChannelId> open_channel(Group& group, std::uint32_t peer,
                                               std::uint64_t lane);

  /// Until `is_over` says so, the deadline has passed, or another thread leads: then it returns
  /// false. Begins and ends with the lock, and sleeps without.
  template <class IsOver>
  bool lead(std::unique_lock<std::mutex>& lock, Leader as, Deadline deadline, IsOver&& is_over);
  void note(const Wait& wait) noexcept;
  [[nodiscard]] Duration spin(Leader as) const noexcept;
  void sleep(std::unique_lock<std::mutex>& lock, Deadline deadline);
  void let_enter(std::unique_lock<std::mutex>& lock);
  void resign();
  void follow(std::unique_lock<std::mutex>& lock, Deadline deadline);
  /// Whether there is a thread of our own; if there is none, why none can be started.
  [[nodiscard]] Status have_background() noexcept;
  void call_background();
  void serve_aborts() noexcept;
  void answer_others() noexcept;
  void ring_for_background();
  [[nodiscard]] bool wait_for_bell();
  void run_in_background();
  void let_others_wait(Duration delay) const;
  void wake_sleepers();

  const std::unique_ptr<Transport> transport_;
  const bool shares_processors_;
  const Duration burst_pause_;
  const Fd wake_;  // an eventfd: to end a leader's sleep

  std::atomic<std::uint32_t> entering_ = 0;  // threads that want the mutex
  std::mutex mutex_;                         // of all below, atomics are also read without
  Executor executor_;
  const Status world_left_ = Status(StatusCode::aborted, "the world was left");
  // To other ranks, whoever leaves is lost.
  const Status communicator_left_ = Status(StatusCode::peer_lost, "the communicator was left");
  const Status not_a_member_ = Status(StatusCode::peer_lost, "this rank is no member");
  std::atomic<Leader> leader_ = Leader::nobody;
  Patience patience_;         // of a waiter who leads
  Patience shared_patience_;  // where it shares processors, and the operation is large
  std::uint64_t term_ = 0;    // of the leader
  std::uint32_t asleep_ = 0;  // threads that sleep as the leader, or as one that they were
  std::uint32_t followers_ = 0;
  std::condition_variable changed_;    // for followers: a work may be over, or nobody leads
  std::atomic<bool> is_rung_ = false;  // the bell of the background: there is something to do
  std::mutex bell_mutex_;
  std::condition_variable bell_;
  std::atomic<bool> answers_others_ = false;  // the background leads also without operations
  std::atomic<std::uint32_t> background_starts_ = 0;
  Instant last_start_ = {};  // of a message, in the background
  std::uint32_t starts_in_a_row_ = 0;
  std::atomic<bool> is_ending_ = false;
  std::mutex background_mutex_;
  std::thread background_;  // from the first need on
  std::atomic<bool> has_background_ = false;

  std::mutex aborts_mutex_;  // innermost: no other is taken while it is held
  Group* aborted_ = nullptr;
  std::atomic<bool> has_aborts_ = false;
};

}  // namespace hocket::engine
