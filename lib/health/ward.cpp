#include "health/ward.hpp"

#include <algorithm>
#include <utility>

#include "health/inquest.hpp"

namespace hocket::health {
namespace {

/// Of communicators that this rank may make later, or never.
constexpr std::ptrdiff_t failures_known_max = 256;

}  // namespace

void Wards::add(Ward& ward) {
  const std::lock_guard lock(mutex_);
  const Notice* const cause = Inquest::first_for(known_, ward.id, ward.members);
  const Status why = cause == nullptr ? Status() : cause->status();
  wards_.push_back(&ward);
  if (why.ok()) return;
  ward.cause = why;
  ward.is_failing = true;
  ward.fail(why);
}

void Wards::remove(Ward& ward) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(wards_, &ward);
}

bool Wards::note_failure(Ward& ward) noexcept {
  const std::lock_guard lock(mutex_);
  ward.is_failing = true;
  return ward.is_alarmed;
}

void Wards::alarm(const Notice& notice) {
  const std::lock_guard lock(mutex_);
  for (Ward* const ward : wards_) {
    if (ward->is_failing || !Inquest::first_for({&notice, 1}, ward->id, ward->members)) continue;
    ward->is_failing = ward->is_alarmed = true;
    ward->fail(notice.status());
  }
}

void Wards::settle(std::span<const Notice> causes) {
  const std::lock_guard lock(mutex_);
  known_.insert(known_.end(), causes.begin(), causes.end());
  while (std::ranges::count(known_, Finding::failure, &Notice::finding) > failures_known_max) {
    known_.erase(std::ranges::find(known_, Finding::failure, &Notice::finding));
  }
  for (Ward* const ward : wards_) {
    const Notice* const cause = Inquest::first_for(causes, ward->id, ward->members);
    if (cause == nullptr || !ward->cause.ok()) continue;
    ward->cause = cause->status();
    if (ward->is_failing) continue;
    ward->is_failing = true;
    ward->fail(ward->cause);
  }
  changed_.notify_all();
}

void Wards::ask(const Question& question) {
  const std::lock_guard lock(mutex_);
  for (Ward* const ward : wards_) {
    if (ward->id == question.communicator && !ward->is_failing) ward->compare(question);
  }
}

void Wards::conclude(Ward& ward, const Status& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ward.is_failing, true)) return;  // an earlier cause is being found out
  ward.cause = why;
  changed_.notify_all();
}

Status Wards::cause_of(Ward& ward, Duration patience, bool expects_failure) noexcept {
  std::unique_lock lock(mutex_);
  if (!ward.is_failing && !expects_failure) return {};
  changed_.wait_for(lock, patience, [&] { return !ward.cause.ok(); });
  return ward.cause;
}

}  // namespace hocket::health
