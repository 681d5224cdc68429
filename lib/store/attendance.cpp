#include "store/attendance.hpp"

#include <algorithm>
#include <utility>

namespace hocket::store {

void Attendance::add(ClientId client, Will will, Instant now) {
  static_cast<void>(remove(client));
  const Member member = will.member;
  const auto ours = wills_.emplace(client, std::move(will)).first;
  if (!ours->second.is_of_member()) return;
  try {
    const auto [at, is_new] = worlds_.try_emplace(ours->second.says.front().key,
                                                  World{.size = member.size, .since = now});
    ++at->second.present[member.rank];
    if (is_new) look_ahead();
  } catch (...) {
    wills_.erase(ours);  // it counts nowhere
    throw;
  }
  std::erase_if(refusals_, [&](const Known& each) { return each.absence.rank == member.rank; });
}

std::vector<Announcement> Attendance::remove(ClientId client) {
  const auto found = wills_.find(client);
  if (found == wills_.end()) return {};
  Will will = std::move(found->second);
  wills_.erase(found);
  if (!will.is_of_member()) return std::move(will.says);
  if (const auto at = worlds_.find(will.says.front().key); at != worlds_.end()) {
    World& world = at->second;
    if (--world.present[will.member.rank] == 0) world.present.erase(will.member.rank);
    if (world.present.empty()) worlds_.erase(at);
  }
  return std::move(will.says);
}

void Attendance::refuse(Absence absence, Instant now) {
  std::erase_if(refusals_, [&](const Known& each) {
    return each.until <= now || each.absence.rank == absence.rank;
  });
  if (refusals_.size() >= refusals_max) refusals_.erase(refusals_.begin());
  refusals_.push_back({std::move(absence), now, refusal_grace, now + refusal_memory});
  look_ahead(refusals_.back());
}

bool Attendance::report(Absence absence, Instant now) {
  if (reports_.size() >= reports_max) return false;
  reports_.push_back({std::move(absence), now, Duration::zero(), Instant::max()});
  look_ahead(reports_.back());
  return true;
}

bool Attendance::concerns(const Known& known, const std::string& key, const World& world) {
  const auto& [prefix, rank, value] = known.absence;
  if (world.is_decided || !key.starts_with(prefix)) return false;
  if (rank < 0) return world.present.size() < static_cast<std::size_t>(world.size);
  return rank < world.size && !world.present.contains(rank);
}

Instant Attendance::due(const Known& known, const World& world) {
  return std::max(known.since, world.since) + known.grace;
}

std::vector<Announcement> Attendance::take_due(Instant now) {
  std::vector<Announcement> announcements;
  std::erase_if(refusals_, [now](const Known& each) { return each.until <= now; });
  const auto announce = [&](const Known& known) {
    bool is_used = false;
    for (auto& [key, world] : worlds_) {
      if (!concerns(known, key, world) || due(known, world) > now) continue;
      announcements.push_back({key, known.absence.value});
      world.is_decided = is_used = true;
    }
    return is_used;
  };
  for (const Known& each : reports_) announce(each);
  std::erase_if(refusals_, announce);  // each may end one start
  look_ahead();
  return announcements;
}

void Attendance::look_ahead() {
  next_ = Deadline::never();
  for (const Known& each : refusals_) look_ahead(each);
  for (const Known& each : reports_) look_ahead(each);
}

void Attendance::look_ahead(const Known& known) {
  for (const auto& [key, world] : worlds_) {
    if (concerns(known, key, world)) next_ = next_.or_sooner(Deadline(due(known, world)));
  }
}

}  // namespace hocket::store
