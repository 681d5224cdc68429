// What the first cause was, when many ranks notice many things at nearly the same time. A state
// machine without clock, thread or socket.
//
// Each rank passes on what it hears. One waits a moment for the rest, decides, and tells the
// others, who take that over. If nothing comes of it, each decides by itself, and all that know the
// same decide alike. What comes later changes nothing any more.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "health/notice.hpp"

namespace hocket::health {

class CauseFinder {
 public:
  /// Without news for so long, all notices of one event have reached the one who decides, unless
  /// one is known to be missing.
  static constexpr Duration settling_time = std::chrono::milliseconds(20);
  /// However much is news.
  static constexpr Duration settling_time_max = std::chrono::milliseconds(80);
  /// Since there is something to decide: by then the decision of another has come.
  static constexpr Duration decision_patience = std::chrono::milliseconds(120);

  /// True if it says something new: it is to be passed on.
  bool add(const Notice& notice, Instant now);
  /// When those fail that it concerns, if they have not: what has reached them by then may still
  /// bring their operations to an end, and what they were doing belongs into the story.
  [[nodiscard]] Deadline alarm_due() const noexcept { return alarm_due_; }
  void note_alarm() noexcept { alarm_due_ = Deadline::never(); }
  /// When to decide, if that falls to this rank.
  [[nodiscard]] Deadline due() const noexcept { return due_; }
  /// When to decide, if it falls to another.
  [[nodiscard]] Deadline due_alone() const noexcept { return due_alone_; }
  /// Decides. What was found out now, the first cause first.
  std::vector<Notice> decide();
  /// What another has decided, as this rank says it. Nothing if it is settled, or can't be right.
  [[nodiscard]] std::optional<Notice> news_of(const Notice& decided) const;
  /// Takes it over.
  void settle(const Notice& cause, Instant now);

  /// The first of these that concerns such a communicator; null if none does.
  [[nodiscard]] static const Notice* first_for(std::span<const Notice> causes,
                                               std::uint64_t communicator,
                                               std::span<const std::uint32_t> members);
  /// All that was decided.
  [[nodiscard]] const std::vector<Notice>& causes() const noexcept { return causes_; }
  /// All that was told of what is not decided yet.
  [[nodiscard]] std::vector<Notice> told() const;
  /// What is not decided yet, one for each event.
  [[nodiscard]] std::vector<Notice> open_cases() const;
  [[nodiscard]] bool is_gone(std::uint32_t rank) const;
  /// Who says that the rank has ended, if somebody says so who can know.
  [[nodiscard]] std::optional<std::uint32_t> accuser_of(std::uint32_t rank) const;
  /// Nobody will ask for this communicator any more. What is being found out goes on for others.
  void forget(std::uint64_t communicator);

 private:
  /// Who or what has ended.
  struct Subject {
    std::uint32_t rank = nobody;
    std::uint64_t communicator = 0;

    friend auto operator<=>(const Subject&, const Subject&) = default;
  };
  struct Case {
    std::int64_t time = 0;                      // of the first notice
    std::map<std::uint32_t, Notice> told = {};  // the best of each origin
    Notice best = {};                           // of all
  };

  [[nodiscard]] static Subject subject_of(const Notice& notice) noexcept;
  [[nodiscard]] static bool is_better(const Notice& a, const Notice& b) noexcept;
  [[nodiscard]] static bool misses_first_hand(const Notice& best) noexcept;
  [[nodiscard]] bool is_settled(const Subject& subject) const;
  [[nodiscard]] bool is_known(const Notice& notice) const;
  [[nodiscard]] bool is_of_one_cut_off(const Notice& accusation) const;
  void find_who_is_late();
  void complete_failures();
  void complete_deaths();
  void drop_what_follows_from(const Notice& cause);
  void remember(const Notice& cause);
  void wait_from(Instant now) noexcept;
  void settle_from(Instant now) noexcept;
  void rest_if_done() noexcept;

  std::map<Subject, Case> cases_;
  std::vector<Notice> causes_;
  std::set<std::uint64_t> settled_;  // communicators; also those whose cause was forgotten
  Deadline alarm_due_;
  Deadline due_;
  Deadline due_at_last_;
  Deadline due_alone_;
};

}  // namespace hocket::health
