// Tells the recorder when operations and messages begin, wait and end. Reading the clock would take
// longer than the rest of a record, so the time of the leader's last look is used if nothing has
// happened since then.
#pragma once

#include <cstdint>

#include "base/clock.hpp"
#include "engine/group.hpp"
#include "engine/mailbox.hpp"
#include "engine/run.hpp"
#include "record/recorder.hpp"

namespace hocket::engine {

// Both rooms use the same value for "no particular rank".
static_assert(any_rank == record::nobody);
static_assert(static_cast<std::uint8_t>(plan::Operation::exscan) < record::kind_send);

/// Without a recorder all functions do nothing.
class TimedRecorder {
 public:
  explicit TimedRecorder(record::Recorder* recorder) noexcept : recorder_(recorder) {}
  /// One without a recorder.
  [[nodiscard]] static TimedRecorder& off() noexcept {
    static TimedRecorder none(nullptr);
    return none;
  }

  /// The records that follow have this time, until forget_time() is called.
  void note_time(Instant now) noexcept { now_ = now; }
  /// The next record reads the clock.
  void forget_time() noexcept { now_ = {}; }

  /// Returns the operation's sequence number, for the functions below; 0 without a recorder.
  [[nodiscard]] std::uint64_t begin(const Task& task, record::State state) noexcept {
    if (recorder_ == nullptr) return 0;
    return recorder_->begin(
        {.kind = static_cast<std::uint8_t>(task.binding->program().plan().problem.operation),
         .communicator = task.group->record_id,
         .number = task.number,
         .tag = task.tag.bits(),
         .bytes = task.binding->in_bytes(),
         .begun = task.begun,
         .state = state});
  }
  [[nodiscard]] std::uint64_t begin(const record::Recorder::Operation& operation) noexcept {
    return recorder_ == nullptr ? 0 : recorder_->begin(operation);
  }
  [[nodiscard]] std::uint64_t begin(const Parcel& parcel, std::uint64_t communicator) noexcept {
    if (recorder_ == nullptr) return 0;
    return recorder_->begin({.kind = parcel.sends ? record::kind_send : record::kind_receive,
                             .communicator = communicator,
                             .tag = parcel.tag,
                             .bytes = parcel.bytes,
                             .peer = parcel.peer,
                             .begun = parcel.begun});
  }
  void start(std::uint64_t record) noexcept {
    if (recorder_ != nullptr) recorder_->start(record);
  }
  void note_arrival(std::uint64_t record) noexcept {
    if (recorder_ != nullptr) recorder_->note_arrival(record, now());
  }
  void note_wait(std::uint64_t record, std::uint32_t step, std::uint32_t peer) noexcept {
    if (recorder_ != nullptr) recorder_->note_wait(record, step, peer);
  }
  void end(std::uint64_t record, bool is_done) noexcept {
    if (recorder_ != nullptr) recorder_->end(record, now(), is_done);
  }

 private:
  [[nodiscard]] Instant now() const noexcept {
    return now_ == Instant() ? monotonic_clock().now() : now_;
  }

  record::Recorder* const recorder_;
  Instant now_ = {};
};

}  // namespace hocket::engine
