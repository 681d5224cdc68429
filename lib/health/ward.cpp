#include "health/ward.hpp"

#include <algorithm>
#include <utility>

#include "health/inquest.hpp"

namespace hocket::health {

void Wards::add(Ward& ward) {
  const std::lock_guard lock(mutex_);
  wards_.push_back(&ward);
  const Notice* const cause = Inquest::first_for(deaths_, ward.id, ward.members);
  if (cause == nullptr) return;
  ward.cause = cause->status();
  ward.is_failing = true;
  ward.fail(ward.cause);
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
  for (const Notice& each : causes) {
    if (each.finding != Finding::failure) deaths_.push_back(each);
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

void Wards::ask(std::uint64_t communicator, std::uint64_t place, std::uint64_t tag,
                std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  for (Ward* const ward : wards_) {
    if (ward->id == communicator && !ward->is_failing) ward->compare(place, tag, rank);
  }
}

void Wards::conclude(Ward& ward, const Status& why) noexcept {
  const std::lock_guard lock(mutex_);
  if (std::exchange(ward.is_failing, true)) return;  // an earlier cause is being found out
  ward.cause = why;
  changed_.notify_all();
}

Status Wards::cause_of(Ward& ward, Duration patience) noexcept {
  std::unique_lock lock(mutex_);
  if (!ward.is_failing) return {};
  changed_.wait_for(lock, patience, [&] { return !ward.cause.ok(); });
  return ward.cause;
}

}  // namespace hocket::health
