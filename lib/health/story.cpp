#include "health/story.hpp"

#include <algorithm>

namespace hocket::health {

bool Story::take(const Notice& notice, std::optional<std::uint32_t> from, Instant now) {
  const bool is_possible =
      (notice.culprit == nobody || notice.culprit < size_) && notice.origin < size_;
  if (!is_possible || !cause_finder_.add(notice, now)) return false;
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

void Story::take_decision(const Notice& notice) {
  cause_finder_.settle(notice);
  groups_.settle({&notice, 1});
}

Instant Story::due() const noexcept {
  return std::min(cause_finder_.alarm_due().at(), cause_finder_.due().at());
}

void Story::work(Instant now) {
  if (cause_finder_.alarm_due().passed(now)) sound_alarm();
  if (cause_finder_.due().passed(now)) decide();
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
  for (const Notice& each : causes) {
    if (each.finding != Finding::failure && each.culprit != rank_) host_.part_from(each);
  }
  groups_.settle(causes);
}

}  // namespace hocket::health
