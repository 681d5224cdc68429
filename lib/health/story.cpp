#include "health/story.hpp"

#include <algorithm>

namespace hocket::health {

bool Story::is_possible(const Notice& notice) const noexcept {
  return (notice.culprit == nobody || notice.culprit < size_) && notice.origin < size_;
}

bool Story::take(const Notice& notice, std::optional<std::uint32_t> from, Instant now) {
  if (!is_possible(notice) || !cause_finder_.add(notice, now)) return false;
  host_.spread(notice, from);
  if (cause_finder_.alarm_due().is_never()) sound_alarm();  // it comes behind the alarm
  return true;
}

void Story::mention(std::uint32_t rank, const std::string& operation, Instant now,
                    std::int64_t time) {
  if (rank >= size_) return;
  mentions_[rank] = operation;
  for (const Notice& each : cause_finder_.open_cases()) {
    if (each.finding == Finding::failure || each.culprit != rank) continue;
    Notice notice = each;
    notice.origin = rank_;
    notice.time = time;
    notice.operation = operation;
    take(notice, {}, now);
    return;
  }
}

Notice Story::death_of(std::uint32_t rank, std::int64_t time) const {
  Notice notice = {.finding = Finding::death, .origin = rank_, .culprit = rank, .time = time};
  if (const auto mentioned = mentions_.find(rank); mentioned != mentions_.end()) {
    notice.operation = mentioned->second;
  }
  return notice;
}

void Story::take_decision(const Notice& notice, std::uint32_t from, Instant now) {
  if (!is_possible(notice) || cause_finder_.accuser_of(from)) return;
  const std::optional<Notice> cause = cause_finder_.news_of(notice);
  if (!cause) return;
  groups_.settle({&*cause, 1});  // first: without memory for it, it is not settled
  cause_finder_.settle(*cause, now);
  pass_on(*cause, from);
}

/// It is the lowest of those that are left, as far as it knows.
bool Story::decides_for_all() const {
  // Who finds himself cut off has nobody to wait for.
  if (const auto accuser = cause_finder_.accuser_of(rank_)) return *accuser == rank_;
  for (std::uint32_t rank = 0; rank < rank_; ++rank) {
    if (host_.is_here(rank) && !cause_finder_.accuser_of(rank)) return false;
  }
  return true;
}

Deadline Story::decision_due() const {
  return decides_for_all() ? cause_finder_.due() : cause_finder_.due_alone();
}

Instant Story::due() const { return std::min(cause_finder_.alarm_due().at(), decision_due().at()); }

void Story::work(Instant now) {
  if (cause_finder_.alarm_due().passed(now)) sound_alarm();
  if (decision_due().passed(now)) decide();
}

void Story::sound_alarm() {
  cause_finder_.note_alarm();
  for (const Notice& each : cause_finder_.open_cases()) {
    const bool accuses_us = each.finding == Finding::silence && each.culprit == rank_;
    if (!accuses_us) groups_.alarm(each);
  }
}

void Story::decide() {
  const std::vector<Notice> causes = cause_finder_.decide();
  groups_.settle(causes);
  for (const Notice& each : causes) pass_on(each, {});
}

void Story::pass_on(const Notice& cause, std::optional<std::uint32_t> from) {
  host_.spread_decision(cause, from);
  if (cause.finding != Finding::failure && cause.culprit != rank_) host_.part_from(cause.culprit);
}

}  // namespace hocket::health
