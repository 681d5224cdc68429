#include "health/cause_finder.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace hocket::health {
namespace {

constexpr std::ptrdiff_t failures_kept = 256;

}  // namespace

CauseFinder::Subject CauseFinder::subject_of(const Notice& notice) noexcept {
  if (notice.finding == Finding::failure) return {.communicator = notice.communicator};
  return {.rank = notice.culprit};
}

/// Of two on the same subject: the surer, the more telling, else the earlier.
bool CauseFinder::is_better(const Notice& a, const Notice& b) noexcept {
  const auto key = [](const Notice& each) {
    const bool is_doubtful = each.finding == Finding::silence;
    const bool is_vague = each.code != StatusCode::mismatch;
    return std::tuple(is_doubtful, is_vague, each.is_second_hand, each.operation.empty(), each.time,
                      each.origin);
  };
  return key(a) < key(b);
}

/// Only who has seen two calls that differ can name both; all others were told that they do.
bool CauseFinder::misses_first_hand(const Notice& best) noexcept {
  return best.code == StatusCode::mismatch && best.is_second_hand;
}

bool CauseFinder::is_settled(const Subject& subject) const {
  return subject.rank == nobody ? settled_.contains(subject.communicator) : is_gone(subject.rank);
}

/// What was decided says it, or that its origin had better be ignored.
bool CauseFinder::is_known(const Notice& notice) const {
  return is_settled(subject_of(notice)) || is_gone(notice.origin) ||
         (notice.culprit != nobody && is_gone(notice.culprit));
}

bool CauseFinder::add(const Notice& notice, Instant now) {
  if (is_known(notice)) return false;
  const Subject subject = subject_of(notice);
  const bool is_first = cases_.empty();
  if (const auto found = cases_.find(subject); found == cases_.end()) {
    cases_.emplace(subject, Case{notice.time, {{notice.origin, notice}}, notice});
  } else {
    Case& known = found->second;
    const auto [own, is_new] = known.told.try_emplace(notice.origin, notice);
    if (!is_new && !is_better(notice, own->second)) return false;
    Notice news = notice;
    if (!is_new && news.operation.empty()) {  // the rank has named its operation before
      news.operation = own->second.operation;
      news.step = own->second.step;
    }
    if (is_better(news, known.best)) known.best = news;
    own->second = std::move(news);
    known.time = std::min(known.time, notice.time);
  }
  if (is_first) {
    alarm_due_ = Deadline(now + settling_time / 2);
    wait_from(now);
  }
  settle_from(now);
  return true;
}

/// Without more news.
void CauseFinder::settle_from(Instant now) noexcept {
  const bool is_complete = std::ranges::none_of(
      cases_, [](const auto& each) { return misses_first_hand(each.second.best); });
  due_ = is_complete ? Deadline(now + settling_time).or_sooner(due_at_last_) : due_at_last_;
}

void CauseFinder::wait_from(Instant now) noexcept {
  due_at_last_ = Deadline(now + settling_time_max);
  due_alone_ = Deadline(now + decision_patience);
}

/// Of one who hears nobody, and so calls everybody silent.
bool CauseFinder::is_of_one_cut_off(const Notice& accusation) const {
  if (accusation.finding != Finding::silence) return false;
  const auto says_so = [&](const Notice& each) {
    return each.finding == Finding::cut_off && each.culprit == accusation.origin;
  };
  const auto accuser = cases_.find({.rank = accusation.origin});
  const bool is_open = accuser != cases_.end() && says_so(accuser->second.best);
  return is_open || std::ranges::any_of(causes_, says_so);
}

/// Who waits for one that waits himself may know no better; who waits for nobody holds them all up.
void CauseFinder::find_who_is_late() {
  for (auto& [subject, each] : cases_) {
    if (each.best.code != StatusCode::timeout) continue;
    const Notice* last = &each.best;
    for (std::size_t hops = 0; hops < each.told.size(); ++hops) {
      const auto next = each.told.find(last->awaited);
      if (next == each.told.end() || next->second.awaited == nobody) break;
      last = &next->second;
    }
    if (last->awaited == nobody || last->awaited == each.best.culprit) continue;
    each.best.culprit = last->awaited;
    each.best.what =
        fmt::format("rank {} has not reached this operation in time, and rank {} waits for it",
                    last->awaited, last->origin);
    each.best.operation = last->operation;
    each.best.step = last->step;
    each.best.origin = last->origin;
  }
}

/// A death is noticed by connections, which know of no operation; a failure that names the dead
/// rank does.
void CauseFinder::complete_deaths() {
  for (auto& [subject, each] : cases_) {
    if (subject.rank == nobody) continue;
    const Notice* told = nullptr;
    for (const auto& [other, failure] : cases_) {
      if (other.rank != nobody) continue;
      const bool names_it = failure.best.culprit == subject.rank;
      // Of several ranks that are lost at once, an operation can name but one.
      const bool may_follow = names_it || failure.best.is_second_hand;
      if (names_it) each.time = std::min(each.time, failure.time);
      for (const auto& [origin, notice] : failure.told) {
        if (may_follow && (told == nullptr || is_better(notice, *told))) told = &notice;
      }
    }
    if (told == nullptr || !each.best.operation.empty()) continue;
    each.best.operation = told->operation;
    each.best.step = told->step;
    each.best.origin = told->origin;
  }
}

/// Who found it out may have been in no operation, or in another one.
void CauseFinder::complete_failures() {
  for (auto& [subject, each] : cases_) {
    if (subject.rank != nobody || !each.best.operation.empty()) continue;
    const Notice* told = nullptr;
    for (const auto& [origin, notice] : each.told) {
      const bool tells = !notice.operation.empty();
      if (tells && (told == nullptr || is_better(notice, *told))) told = &notice;
    }
    if (told == nullptr) continue;
    each.best.operation = told->operation;
    each.best.step = told->step;
  }
}

std::vector<Notice> CauseFinder::decide() {
  std::vector<std::uint32_t> cleared;  // accused by one who hears nobody
  for (const auto& [subject, each] : cases_) {
    if (is_of_one_cut_off(each.best)) cleared.push_back(subject.rank);
  }
  for (const std::uint32_t rank : cleared) cases_.erase({.rank = rank});
  find_who_is_late();
  complete_failures();
  complete_deaths();
  std::vector<Case> found;
  for (auto& [subject, each] : cases_) {
    // The death says what the failure was.
    const std::uint32_t culprit = each.best.culprit;
    const bool is_explained = subject.rank == nobody && culprit != nobody &&
                              (cases_.contains({.rank = culprit}) ||
                               std::ranges::find(cleared, culprit) != cleared.end());
    if (!is_explained) found.push_back(each);
  }
  std::ranges::stable_sort(found, {}, &Case::time);
  std::vector<Notice> causes;
  for (Case& each : found) {
    each.best.time = each.time;
    causes.push_back(std::move(each.best));
  }
  for (const Notice& each : causes) remember(each);
  cases_.clear();
  rest_if_done();
  return causes;
}

std::optional<Notice> CauseFinder::news_of(const Notice& decided) const {
  const Subject subject = subject_of(decided);
  if (is_settled(subject) || is_of_one_cut_off(decided)) return std::nullopt;
  Notice cause = decided;
  const auto known = cases_.find(subject);
  if (known == cases_.end() || decided.code != StatusCode::aborted) return cause;
  // Others call aborted what a rank's own system, device or callback did to it.
  const auto own = known->second.told.find(decided.origin);
  const bool is_ours = own != known->second.told.end() && is_local_failure(own->second.code);
  if (is_ours) cause.code = own->second.code;
  return cause;
}

void CauseFinder::settle(const Notice& cause, Instant now) {
  remember(cause);
  drop_what_follows_from(cause);
  if (cases_.empty()) return rest_if_done();
  wait_from(now);
  settle_from(now);
}

void CauseFinder::drop_what_follows_from(const Notice& cause) {
  const Subject settled = subject_of(cause);
  const auto is_explained = [&](const Notice& each) {
    return settled.rank != nobody && (each.culprit == settled.rank || each.origin == settled.rank);
  };
  for (auto each = cases_.begin(); each != cases_.end();) {
    auto& [subject, known] = *each;
    const bool is_failure = subject.rank == nobody;
    std::erase_if(known.told, [&](const auto& told) { return is_explained(told.second); });
    const bool is_over =
        subject == settled || known.told.empty() ||
        (is_failure && known.best.culprit == settled.rank && settled.rank != nobody);
    if (is_over) {
      each = cases_.erase(each);
      continue;
    }
    const auto second = [](const auto& pair) -> const Notice& { return pair.second; };
    known.best = std::ranges::min_element(known.told, is_better, second)->second;
    ++each;
  }
}

void CauseFinder::remember(const Notice& cause) {
  if (cause.finding == Finding::failure) settled_.insert(cause.communicator);
  causes_.push_back(cause);
  // Only those who are members of a communicator forget it.
  while (std::ranges::count(causes_, Finding::failure, &Notice::finding) > failures_kept) {
    causes_.erase(std::ranges::find(causes_, Finding::failure, &Notice::finding));
  }
}

void CauseFinder::rest_if_done() noexcept {
  if (cases_.empty()) alarm_due_ = due_ = due_alone_ = Deadline::never();
}

std::vector<Notice> CauseFinder::told() const {
  std::vector<Notice> all;
  for (const auto& [subject, each] : cases_) {
    for (const auto& [origin, notice] : each.told) all.push_back(notice);
  }
  return all;
}

std::vector<Notice> CauseFinder::open_cases() const {
  std::vector<Notice> open;
  for (const auto& [subject, each] : cases_) {
    if (!is_of_one_cut_off(each.best)) open.push_back(each.best);
  }
  return open;
}

const Notice* CauseFinder::first_for(std::span<const Notice> causes, std::uint64_t communicator,
                                     std::span<const std::uint32_t> members) {
  const auto found = std::ranges::find_if(causes, [&](const Notice& each) {
    if (each.finding == Finding::failure) return each.communicator == communicator;
    return std::ranges::find(members, each.culprit) != members.end();
  });
  return found == causes.end() ? nullptr : &*found;
}

bool CauseFinder::is_gone(std::uint32_t rank) const {
  return std::ranges::any_of(causes_, [&](const Notice& each) {
    return each.finding != Finding::failure && each.culprit == rank;
  });
}

std::optional<std::uint32_t> CauseFinder::accuser_of(std::uint32_t rank) const {
  const auto found = cases_.find({.rank = rank});
  if (found == cases_.end() || is_of_one_cut_off(found->second.best)) return std::nullopt;
  return found->second.best.origin;
}

void CauseFinder::forget(std::uint64_t communicator) {
  std::erase_if(causes_, [&](const Notice& each) {
    return each.finding == Finding::failure && each.communicator == communicator;
  });
}

}  // namespace hocket::health
