// Communicators, as they are told what has ended them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "health/notice.hpp"
#include "health/question.hpp"

namespace hocket::health {

/// One of them.
struct WatchedGroup {
  std::uint64_t id = 0;  // the same on all its ranks
  /// As ranks of the world.
  std::span<const std::uint32_t> members = {};
  /// Ends what is under way, for this reason. Waits for nothing.
  std::function<void(const Status&)> fail = {};
  /// The failure, with ranks of the world, if this rank has called something else than the one that
  /// asks. Waits for nothing.
  std::function<Status(const Question&)> compare = {};

  // Of WatchedGroups.
  bool is_failing = false;  // it has failed; why is being found out
  bool is_alarmed = false;  // because other ranks say so
  Status cause = {};        // why, once that is known; with ranks of the world
};

/// Any thread.
class WatchedGroups {
 public:
  /// Borrowed until it is removed. May fail at once, if a member is lost already.
  void add(WatchedGroup& group);
  /// Whether it has failed.
  bool remove(WatchedGroup& group) noexcept;

  /// It has failed. Whether it was told to.
  bool note_failure(WatchedGroup& group) noexcept;
  /// Something has ended, which is being looked into: those that it concerns fail.
  void alarm(const Notice& notice);
  /// What was found out, the first cause first.
  void settle(std::span<const Notice> causes);
  /// Lets it compare, and returns what differs.
  [[nodiscard]] Status ask(const Question& question);
  /// Ends what the communicator has under way, because the others have been told why.
  void end(std::uint64_t id, const Status& why);
  /// What ended it is known here beyond doubt.
  void conclude(WatchedGroup& group, const Status& why) noexcept;

  /// Why it failed. Waits for that, at most so long, if it has failed or is expected to. Success if
  /// it is not known.
  [[nodiscard]] Status cause_of(WatchedGroup& group, Duration patience,
                                bool expects_failure) noexcept;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<WatchedGroup*> groups_;
  std::vector<Notice> known_;  // for communicators that are made later
};

}  // namespace hocket::health
