// What has ended, as one rank knows it: what it notices and what others tell it, to whom it passes
// that on, and when its communicators fail. Without clock, thread or socket: whoever owns it says
// what time it is, and carries its words to other ranks.
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
  /// To all ranks that this one has a line to, but for one.
  virtual void spread(const Notice& notice, std::optional<std::uint32_t> except) = 0;
  /// The rank that it names counts as lost: it is told so, should it come back, and heard no more.
  virtual void part_from(const Notice& cause) = 0;

 protected:
  ~StoryHost() = default;
};

/// Borrows what it is made of. One thread at a time.
class Story {
 public:
  /// Of that rank of a world of that size.
  Story(std::uint32_t rank, std::uint32_t size, WatchedGroups& groups, StoryHost& host)
      : rank_(rank), size_(size), groups_(groups), host_(host) {}

  /// What another rank says, or this one has found out. Whether it is news.
  bool take(const Notice& notice, std::optional<std::uint32_t> from, Instant now);
  /// If that rank turns out to have died: this is an operation in which it was noticed. `time`: of
  /// day, as a notice has it.
  void mention(std::uint32_t rank, const std::string& operation, Instant now, std::int64_t time);
  /// The others have decided without us: we were stopped or cut off meanwhile.
  void take_decision(const Notice& notice);
  /// That a rank's process has ended, but for the words.
  [[nodiscard]] Notice death_of(std::uint32_t rank, std::int64_t time) const;
  /// Nobody asks for this communicator any more.
  void forget(std::uint64_t communicator) { cause_finder_.forget(communicator); }

  /// Does what is due.
  void work(Instant now);
  /// When more is.
  [[nodiscard]] Instant due() const noexcept;
  /// All that there is to tell one who knows nothing yet.
  [[nodiscard]] std::vector<Notice> all() const { return cause_finder_.all(); }

 private:
  void sound_alarm();
  void decide();

  const std::uint32_t rank_;
  const std::uint32_t size_;
  WatchedGroups& groups_;
  StoryHost& host_;
  std::map<std::uint32_t, std::string> mentions_;
  CauseFinder cause_finder_;
};

}  // namespace hocket::health
