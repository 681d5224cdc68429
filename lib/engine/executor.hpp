// Runs plans over a transport: any number at once, in one thread, without waiting.
//
// A step begins when all that it waits for is done; its bytes go as messages of one segment each,
// so that the far end of a pipeline works while its beginning still sends. A step that is abreast
// of another (Program) follows it segment by segment.
//
// Nothing here throws, but where it says so. Memory may run out, and a custom op may throw,
// wherever a run or a mailbox is moved on: its group fails then, and so does all that the group has
// under way. To fail and to finish takes no memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "hocket/transport.hpp"

#include "engine/group.hpp"
#include "engine/mailbox.hpp"
#include "engine/op_list.hpp"
#include "engine/run.hpp"
#include "engine/slots.hpp"
#include "engine/timed_recorder.hpp"

namespace hocket::engine {

struct ExecutorOptions {
  /// All ranks cut messages alike, into so much at most. A multiple of 16, and no less than the
  /// largest element (HOCKET_BYTES_MAX).
  std::uint64_t segment_bytes = 256 << 10;
  /// Of one step, under way at once.
  std::uint32_t segments_max = 4;
  record::Recorder* recorder = nullptr;  // borrowed
};

class Executor {
 public:
  /// Borrows the transport.
  explicit Executor(Transport& transport, const ExecutorOptions& options = {});

  /// Runs it behind those that its group has already. The task's work is over when all its steps
  /// are, and no part of its memory is touched any more.
  void start(const Task& task) noexcept;

  // Messages of a group, which borrow its mailbox.
  /// Throws without memory; nothing has changed then.
  void attach(Group& group, Mailbox& mailbox);
  /// To send to and receive from a peer. Throws without memory; the group must be failed then.
  void open(Group& group, std::uint32_t peer, ChannelId letters, ChannelId payloads);
  /// Together: with those that follow, once they are many or in progress().
  enum class Post : std::uint8_t { at_once, together };
  void start(Group& group, const Parcel& parcel, Post post = Post::at_once) noexcept;
  /// Of a group whose channels are closed: until the transport has nothing of it.
  void detach(Group& group, const Status& why) noexcept;

  /// Moves on what can be moved on. Whether anything was.
  bool progress() noexcept;

  /// Every operation of the group fails for this reason, now and later.
  void fail(Group& group, const Status& why) noexcept;
  /// As fail(), and closes the channels in any case, also those that its observer has kept open.
  void end(Group& group, const Status& why) noexcept;
  /// Ends the channels of the group, and its lanes, for this reason.
  void close(const Group& group, const Status& why) noexcept;
  /// Whether a group has ever ended, so that other ranks may still dial it: they wait until this
  /// rank polls the transport.
  [[nodiscard]] bool has_ended_groups() const noexcept { return has_ended_groups_; }

  void fail_all(const Status& why) noexcept;
  /// Fails the groups of all operations whose deadline has passed, and ends the messages that fail
  /// alone. Returns whether any work has ended by it.
  bool expire(Instant now) noexcept;
  /// The next one, of operations that run.
  [[nodiscard]] Deadline deadline() const noexcept;
  /// Tells observers of operations that wait for others. To be called often.
  void look_for_stalls(Instant now) noexcept;
  /// When that could find something.
  [[nodiscard]] Deadline next_look() const noexcept;

  [[nodiscard]] TimedRecorder& recorder() noexcept { return recorder_; }
  // The leader's clock, for the records of operations.
  /// Sets the time of the records that follow. Nothing has happened since the last progress().
  void note_time(Instant now) noexcept { recorder_.note_time(now); }
  /// Some time has passed, so the next record reads the clock.
  void forget_time() noexcept { recorder_.forget_time(); }

  /// Whether parts of a large operation are under way: to wait for these says nothing of how soon
  /// something small would come.
  [[nodiscard]] bool cuts_through() const noexcept;
  /// progress() has something to do, whatever the transport has.
  [[nodiscard]] bool has_local_work() const noexcept { return !local_.empty(); }
  /// Operations that run, and messages that are not over.
  [[nodiscard]] std::size_t active() const noexcept;

 private:
  struct StepId {
    std::uint32_t run = 0;
    std::uint32_t step = 0;
  };

  /// Calls work(). What it throws becomes the failure of the group.
  template <class Work>
  void guarded(Group& group, const Work& work) noexcept;
  void fail_by_exception(Group& group) noexcept;

  void enqueue(const Task& task) noexcept;
  void begin(const Task& task) noexcept;
  [[nodiscard]] Run& take_run();
  void begin_next() noexcept;
  void begin_next(Group& group) noexcept;
  void finish_if_over(Run& run) noexcept;
  void finish(Run& run) noexcept;
  void drop_unposted(Run& run) noexcept;
  [[nodiscard]] std::vector<std::unique_ptr<Run>>::const_iterator run_of(
      const Group& group) const noexcept;
  void note_last_step(const Group& group) noexcept;
  [[nodiscard]] bool tell_observer(const Group& group) const noexcept;

  // These may throw; their run's group must be failed then.

  void drain(Run& run);
  void release(Run& run, std::uint32_t step);
  void advance(Run& run, std::uint32_t step);
  void advance_whole(Run& run, std::uint32_t step);
  void advance_in_segments(Run& run, std::uint32_t step);
  void work_on_segment(Run& run, std::uint32_t step, std::uint64_t limit);
  [[nodiscard]] TransportOp& add_for_slot(std::uint32_t slot);
  void receive_in_slot(Run& run, std::uint32_t step, std::uint64_t bytes);
  void post_message(Run& run, std::uint32_t step, std::uint64_t begin, std::uint64_t bytes);
  [[nodiscard]] static bool count_down_next(Run& run, const Instruction& it);
  void end_segment(Run& run, std::uint32_t step, std::uint64_t bytes);
  void end_step(Run& run, std::uint32_t step);
  void let_followers_go(Run& run, std::uint32_t step);

  class Arrival;
  void note_wait(const Run& run, int step) noexcept;
  void complete(TransportCompletion& completion);
  void complete_in_full(Run& run, TransportCompletion& completion);
  [[nodiscard]] const std::byte* arrived_in(std::uint32_t slot,
                                            const TransportCompletion& completion) const noexcept {
    return completion.lent != nullptr ? completion.lent : slots_.memory(slot);
  }
  void give_back(std::uint32_t slot, const TransportCompletion& completion) noexcept;
  void complete_mail(TransportCompletion& completion);
  /// Whose operation or message it is of; null when that is over.
  [[nodiscard]] Group* group_of(const TransportCompletion& completion) const noexcept;

  void post_before_work(std::uint64_t bytes) noexcept;
  bool flush() noexcept;
  [[nodiscard]] bool refuse_first() noexcept;

  Transport& transport_;
  ExecutorOptions options_;
  Slots slots_;
  TimedRecorder recorder_;
  std::vector<std::unique_ptr<Run>> runs_;
  std::vector<Run*> free_runs_;
  std::vector<Group*> mailing_;       // by number of their mailbox; null: free
  std::vector<Group*> free_groups_;   // whose next operation may begin; empty between calls
  std::vector<std::uint32_t> ready_;  // steps of one run, to be looked at; empty between calls
  std::vector<StepId> local_;         // with local work left: a segment at a time
  bool has_ended_groups_ = false;
  std::uint32_t busy_polls_ = 0;
  Instant next_look_ = {};
  OpList outgoing_;
  OpList refused_;
  std::array<TransportCompletion, 64> completions_ = {};  // of one poll
};

}  // namespace hocket::engine
