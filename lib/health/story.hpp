// What one rank knows about failures: it collects what it notices and what others report, passes
// news on, and decides when its communicators fail and why. The lowest rank that is left decides
// for all; the others do if they do not hear of it. It has no clock, thread or socket: its owner
// tells it the time and carries its notices to other ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "health/cause_finder.hpp"
#include "health/notice.hpp"
#include "health/watched_groups.hpp"

namespace hocket::health {

class StoryHost {
 public:
  /// Sends the notice to all ranks that this one has a line to, except `except`.
  virtual void spread(const Notice& notice, std::optional<std::uint32_t> except) = 0;
  /// The same with what was decided.
  virtual void spread_decision(const Notice& cause, std::optional<std::uint32_t> except) = 0;
  /// Treats that rank as lost, and ignores what it says.
  virtual void part_from(std::uint32_t rank) = 0;
  /// False if that rank has left, or is lost, as far as this one knows.
  [[nodiscard]] virtual bool is_here(std::uint32_t rank) const = 0;

 protected:
  ~StoryHost() = default;
};

/// Borrows what it is made of. One thread at a time.
class Story {
 public:
  /// For rank `rank` of a world of `size` ranks.
  Story(std::uint32_t rank, std::uint32_t size, WatchedGroups& groups, StoryHost& host)
      : rank_(rank), size_(size), groups_(groups), host_(host) {}

  /// Takes in a notice from another rank, or from this one if `from` is empty. True if it is new.
  bool take(const Notice& notice, std::optional<std::uint32_t> from, Instant now);
  /// Remembers the operation in which trouble with that rank was noticed, in case it has died.
  /// `time` is the time of day in ns since 1970, as in Notice.
  void mention(std::uint32_t rank, const std::string& operation, Instant now, std::int64_t time);
  /// Takes over what that rank has decided, or heard. It may be about us: then we were stopped or
  /// cut off meanwhile.
  void take_decision(const Notice& notice, std::uint32_t from, Instant now);
  /// A notice that the rank's process has ended; the caller adds the text.
  [[nodiscard]] Notice death_of(std::uint32_t rank, std::int64_t time) const;
  /// Nobody asks for this communicator any more.
  void forget(std::uint64_t communicator) { cause_finder_.forget(communicator); }

  /// Does what is due.
  void work(Instant now);
  /// When work() must be called next.
  [[nodiscard]] Instant due() const;
  /// For a rank that has just connected: what was decided, and the rest.
  [[nodiscard]] const std::vector<Notice>& causes() const noexcept {
    return cause_finder_.causes();
  }
  [[nodiscard]] std::vector<Notice> told() const { return cause_finder_.told(); }

 private:
  [[nodiscard]] bool is_possible(const Notice& notice) const noexcept;
  [[nodiscard]] bool decides_for_all() const;
  [[nodiscard]] Deadline decision_due() const;
  void sound_alarm();
  void decide();
  void pass_on(const Notice& cause, std::optional<std::uint32_t> from);

  const std::uint32_t rank_;
  const std::uint32_t size_;
  WatchedGroups& groups_;
  StoryHost& host_;
  std::map<std::uint32_t, std::string> mentions_;
  CauseFinder cause_finder_;
};

}  // namespace hocket::health
