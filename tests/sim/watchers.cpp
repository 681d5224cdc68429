#include "sim/watchers.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "engine/tag.hpp"
#include "health/report.hpp"
#include "health/story.hpp"
#include "health/watched_groups.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;
using health::Notice;

/// Until the other ends of a dead rank's lines notice. Before that, the system may need time to
/// free the process's memory (60 ms for 1 GiB), which is not simulated.
constexpr Duration detection_max = 7ms;
constexpr Duration trip_min = 10us;
constexpr Duration trip_max = 3ms;
/// From the engine's thread to the monitor's.
constexpr Duration post_max = 200us;
/// For how long a rank may stand still, and how long after the first death it may begin.
constexpr Duration stand_still_max = 200ms;
constexpr Duration stand_still_begin_max = 40ms;
/// All survivors must know the cause within this time.
constexpr Duration told_max = 300ms;

std::int64_t time_of_day(Instant now) { return now.time_since_epoch().count(); }

}  // namespace

class Watchers::Rank final : private health::StoryHost, private engine::GroupObserver {
 public:
  Rank(Watchers& all, std::uint32_t rank, engine::Group& group,
       std::vector<std::uint32_t> everybody, std::function<void(const Status&)> fail)
      : all_(all),
        rank_(rank),
        group_(group),
        everybody_(std::move(everybody)),
        is_gone_(everybody_.size()),
        story_(rank, static_cast<std::uint32_t>(everybody_.size()), groups_, *this) {
    watched_.members = everybody_;
    watched_.fail = std::move(fail);
    groups_.add(watched_);
    group_.observer = this;
  }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;
  ~Rank() override {
    group_.observer = nullptr;
    groups_.remove(watched_);
  }

  void take(const Notice& notice, std::optional<std::uint32_t> from) {
    if (from && is_gone_[*from]) return;
    story_.take(notice, from, all_.now());
  }
  void take_decision(const Notice& notice, std::uint32_t from) {
    if (!is_gone_[from]) story_.take_decision(notice, from, all_.now());
  }
  void note_death(std::uint32_t rank) {
    if (is_gone_[rank]) return;
    Notice notice = story_.death_of(rank, time_of_day(all_.now()));
    notice.what = fmt::format("rank {} has died", rank);
    take(notice, {});
  }
  void work() {
    story_.work(all_.now());
    if (told_at_ == Instant() && !watched_.cause.ok()) told_at_ = all_.now();
    const Instant due = story_.due();
    if (due != Instant::max() && due != wakes_at_) all_.world_.alarm(due);
    wakes_at_ = due;
  }

  [[nodiscard]] const Status& cause() const { return watched_.cause; }
  [[nodiscard]] Instant told_at() const { return told_at_; }
  /// Whether it was in a step of an operation when that failed, by what it saw itself.
  [[nodiscard]] bool knows_step() const { return knows_step_; }

 private:
  void spread(const Notice& notice, std::optional<std::uint32_t> except) override {
    send_to_all(except, [notice, from = rank_](Rank& other) { other.take(notice, from); });
  }
  void spread_decision(const Notice& cause, std::optional<std::uint32_t> except) override {
    send_to_all(except, [cause, from = rank_](Rank& other) { other.take_decision(cause, from); });
  }
  void send_to_all(std::optional<std::uint32_t> except, const std::function<void(Rank&)>& arrive) {
    for (const std::uint32_t other : everybody_) {
      const bool is_heard = all_.has_line(rank_, other) && !is_gone_[other] && other != except;
      if (is_heard) all_.send(rank_, other, arrive);
    }
  }
  void part_from(std::uint32_t rank) override { is_gone_[rank] = true; }
  [[nodiscard]] bool is_here(std::uint32_t rank) const override { return !is_gone_[rank]; }

  bool on_failure(const engine::Failure& failure) noexcept override {
    const bool is_alarmed = groups_.note_failure(watched_);
    const Status why = group_.in_world(failure.why);
    knows_step_ = !is_alarmed && why.step() >= 0;
    Notice notice = health::notice_of(
        {.why = why,
         .operation =
             failure.number == 0
                 ? ""
                 : fmt::format("{} #{}", engine::describe_call(failure.tag), failure.number),
         .awaited = failure.awaited,
         .is_second_hand = failure.is_second_hand || is_alarmed},
        watched_.id, rank_, time_of_day(all_.now()));
    all_.at(all_.now() + all_.between(0us, post_max), rank_,
            [this, notice = std::move(notice)] { take(notice, {}); });
    return false;  // the channels are closed at once
  }
  void on_stall(const engine::Stall&) noexcept override {}

  Watchers& all_;
  const std::uint32_t rank_;
  engine::Group& group_;
  const std::vector<std::uint32_t> everybody_;
  std::vector<bool> is_gone_;
  health::WatchedGroups groups_;
  health::WatchedGroup watched_ = {};
  health::Story story_;
  Instant told_at_ = {};
  Instant wakes_at_ = {};
  bool knows_step_ = false;
};

Watchers::Watchers(SimWorld& world, std::vector<engine::Group>& groups, std::uint64_t seed,
                   std::function<void(std::uint32_t rank, const Status& why)> fail)
    : world_(world), random_(seed) {
  std::vector<std::uint32_t> everybody(groups.size());
  for (std::uint32_t rank = 0; rank < groups.size(); ++rank) everybody[rank] = rank;
  for (std::uint32_t rank = 0; rank < groups.size(); ++rank) {
    ranks_.push_back(std::make_unique<Rank>(*this, rank, groups[rank], everybody,
                                            [fail, rank](const Status& why) { fail(rank, why); }));
  }
}

Watchers::~Watchers() = default;

Instant Watchers::now() const { return world_.clock().now(); }

Duration Watchers::between(Duration least, Duration most) {
  return Duration(std::uniform_int_distribution(least.count(), most.count())(random_));
}

void Watchers::at(Instant when, std::uint32_t rank, std::function<void()> happens) {
  agenda_.emplace(when, [this, rank, happens = std::move(happens)] {
    if (!world_.is_alive(rank)) return;
    if (stands_still(rank)) return at(stands_still_until_, rank, happens);
    happens();
  });
  world_.alarm(when);
}

bool Watchers::stands_still(std::uint32_t rank) const {
  return rank == slow_rank_ && stands_still_from_ <= now() && now() < stands_still_until_;
}

void Watchers::send(std::uint32_t from, std::uint32_t to, std::function<void(Rank&)> arrive) {
  Instant& arrival = last_arrival_[{from, to}];
  arrival = std::max(arrival, now() + between(trip_min, trip_max));
  at(arrival, to, [this, to, arrive = std::move(arrive)] { arrive(*ranks_[to]); });
}

bool Watchers::has_line(std::uint32_t a, std::uint32_t b) const {
  const auto size = static_cast<std::uint32_t>(ranks_.size());
  const std::uint32_t ahead = (b + size - a) % size;
  return std::has_single_bit(ahead) || std::has_single_bit((size - ahead) % size);
}

void Watchers::end_lines_of(std::uint32_t dead) {
  if (deaths_.empty()) {
    slow_rank_ = static_cast<std::uint32_t>(random_() % ranks_.size());
    stands_still_from_ = now() + between(0us, stand_still_begin_max);
    stands_still_until_ = stands_still_from_ + between(0us, stand_still_max);
    world_.alarm(stands_still_until_);
  }
  deaths_[dead] = now();
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == dead || !has_line(rank, dead)) continue;
    at(now() + between(0us, detection_max), rank,
       [this, rank, dead] { ranks_[rank]->note_death(dead); });
  }
}

void Watchers::work() {
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (!world_.is_alive(rank) && !deaths_.contains(rank)) end_lines_of(rank);
  }
  while (!agenda_.empty() && agenda_.begin()->first <= now()) {
    const auto happens = std::move(agenda_.begin()->second);
    agenda_.erase(agenda_.begin());
    happens();
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (world_.is_alive(rank) && !stands_still(rank)) ranks_[rank]->work();
  }
}

std::string Watchers::check(std::uint32_t victim) const {
  const auto death = deaths_.find(victim);
  if (death == deaths_.end()) return "";
  std::string story;
  bool has_step = false;  // known in time
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    has_step = has_step || (rank != slow_rank_ && ranks_[rank]->knows_step());
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    if (rank == victim) continue;
    const Status& cause = ranks_[rank]->cause();
    const std::string told = fmt::format("rank {} was told: {}", rank, cause.to_string());
    if (cause.code() != StatusCode::peer_lost || cause.peer() != static_cast<int>(victim)) {
      return told;
    }
    const bool has_place = cause.step() >= 0 && told.find("in no operation") == told.npos;
    if (has_step && !has_place) return told + ": not in which operation and step";
    if (ranks_[rank]->told_at() - death->second > told_max) return told + ": late";
    if (story.empty()) story = cause.to_string();
    if (cause.to_string() != story) return fmt::format("{}; another was told: {}", told, story);
  }
  return "";
}

}  // namespace hocket::testing
