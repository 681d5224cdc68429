#include "health/watched_groups.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "health/cause_finder.hpp"
#include "health/silence.hpp"

namespace hocket::health {
namespace {

/// Of communicators that this rank may make later, or never.
constexpr std::ptrdiff_t failures_known_max = 256;

/// Who waits looks at the time so often.
constexpr Duration look_interval = std::chrono::milliseconds(20);

}  // namespace

void WatchedGroups::add(WatchedGroup& group) {
  const std::lock_guard lock(mutex_);
  const Notice* const cause = CauseFinder::first_for(known_, group.id, group.members);
  const Status why = cause == nullptr ? Status() : cause->status();
  groups_.push_back(&group);
  if (why.ok()) return;
  group.cause = why;
  group.is_failing = true;
  group.fail(why);
}

bool WatchedGroups::remove(WatchedGroup& group) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(groups_, &group);
  return group.is_failing;
}

bool WatchedGroups::note_failure(WatchedGroup& group) noexcept {
  const std::lock_guard lock(mutex_);
  group.is_failing = true;
  return group.is_alarmed;
}

void WatchedGroups::alarm(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  for (WatchedGroup* const group : groups_) {
    if (group->is_failing || !CauseFinder::first_for({&notice, 1}, group->id, group->members))
      continue;
    group->is_failing = group->is_alarmed = true;
    group->fail(notice.status());
  }
}

void WatchedGroups::settle(std::span<const Notice> causes) {
  const std::lock_guard lock(mutex_);
  known_.insert(known_.end(), causes.begin(), causes.end());
  while (std::ranges::count(known_, Finding::failure, &Notice::finding) > failures_known_max) {
    known_.erase(std::ranges::find(known_, Finding::failure, &Notice::finding));
  }
  for (WatchedGroup* const group : groups_) {
    const Notice* const cause = CauseFinder::first_for(causes, group->id, group->members);
    if (cause == nullptr || !group->cause.ok()) continue;
    group->cause = cause->status();
    if (group->is_failing) continue;
    group->is_failing = true;
    group->fail(group->cause);
  }
  changed_.notify_all();
}

Status WatchedGroups::ask(const Question& question) {
  const std::lock_guard lock(mutex_);
  for (WatchedGroup* const group : groups_) {
    if (group->id == question.communicator && group->cause.ok()) return group->compare(question);
  }
  return {};
}

void WatchedGroups::end(std::uint64_t id, const Status& why) {
  const std::lock_guard lock(mutex_);
  for (WatchedGroup* const group : groups_) {
    if (group->id != id) continue;
    group->is_failing = true;
    group->fail(why);
  }
}

void WatchedGroups::conclude(WatchedGroup& group, const Status& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(group.is_failing, true)) return;  // an earlier cause is being found out
  group.cause = why;
  changed_.notify_all();
}

Status WatchedGroups::cause_of(WatchedGroup& group, Duration patience,
                               bool expects_failure) noexcept {
  std::unique_lock lock(mutex_);
  if (!group.is_failing && !expects_failure) return {};
  // A process that was stopped has not waited: what it has to know has come meanwhile.
  Silence silence(look_interval, monotonic_clock().now());
  const auto is_known = [&] { return !group.cause.ok(); };
  do {
    if (changed_.wait_for(lock, look_interval, is_known)) return group.cause;
  } while (silence.look(monotonic_clock().now()) < patience);
  changed_.wait_for(lock, look_interval, is_known);  // it may have been stopped just now
  return group.cause;
}

}  // namespace hocket::health
