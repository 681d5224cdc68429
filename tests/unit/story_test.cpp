#include "health/story.hpp"

#include <chrono>
#include <optional>
#include <set>
#include <vector>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace std::chrono_literals;
using hocket::StatusCode;
using hocket::health::Finding;
using hocket::health::Notice;
using hocket::health::Story;
using hocket::health::WatchedGroup;
using hocket::health::WatchedGroups;
using hocket::testing::ManualClock;

namespace {

/// One rank of four.
class Teller final : private hocket::health::StoryHost {
 public:
  explicit Teller(std::uint32_t rank) : story_(rank, 4, groups_, *this) {
    group_.members = members_;
    group_.fail = [](const hocket::Status&) {};
    groups_.add(group_);
  }
  Teller(const Teller&) = delete;
  Teller& operator=(const Teller&) = delete;
  ~Teller() { groups_.remove(group_); }

  void hear(Finding finding, std::uint32_t culprit, std::uint32_t origin) {
    story_.take(notice(finding, culprit, origin), origin, clock_.now());
  }
  void hear_decision(Finding finding, std::uint32_t culprit, std::uint32_t from) {
    story_.take_decision(notice(finding, culprit, 1), from, clock_.now());
  }
  void leave(std::uint32_t rank) { gone_.insert(rank); }
  /// When it decides, since now.
  [[nodiscard]] hocket::Duration decides_in() {
    const hocket::Instant begin = clock_.now();
    while (decided_.empty() && clock_.now() - begin < 1s) {
      clock_.advance(1ms);
      story_.work(clock_.now());
    }
    return clock_.now() - begin;
  }
  /// Who has ended, as this rank has told others.
  [[nodiscard]] const std::vector<std::uint32_t>& decided() const { return decided_; }
  [[nodiscard]] const hocket::Status& cause() const { return group_.cause; }

 private:
  static Notice notice(Finding finding, std::uint32_t culprit, std::uint32_t origin) {
    return {.finding = finding, .origin = origin, .culprit = culprit, .what = "it has ended"};
  }

  void spread(const Notice&, std::optional<std::uint32_t>) override {}
  void spread_decision(const Notice& cause, std::optional<std::uint32_t>) override {
    decided_.push_back(cause.culprit);
  }
  void part_from(std::uint32_t rank) override { gone_.insert(rank); }
  [[nodiscard]] bool is_here(std::uint32_t rank) const override { return !gone_.contains(rank); }

  const std::vector<std::uint32_t> members_ = {0, 1, 2, 3};
  ManualClock clock_;
  WatchedGroups groups_;
  WatchedGroup group_ = {};
  Story story_;
  std::set<std::uint32_t> gone_;
  std::vector<std::uint32_t> decided_;
};

}  // namespace

TEST_CASE("the lowest rank that is left decides, and others when nothing comes of it") {
  Teller lowest(0);
  lowest.hear(Finding::death, 3, 2);
  REQUIRE(lowest.decides_in() == 20ms);
  Teller other(2);
  other.hear(Finding::death, 3, 1);
  REQUIRE(other.decides_in() == 120ms);
  Teller next(1);
  next.hear(Finding::death, 0, 2);
  REQUIRE(next.decides_in() == 20ms);
  Teller last(2);
  last.leave(0);
  last.hear(Finding::silence, 1, 3);
  REQUIRE(last.decides_in() == 20ms);
}

TEST_CASE("a decision is taken over and passed on once") {
  Teller teller(2);
  teller.hear(Finding::death, 3, 1);
  teller.hear_decision(Finding::death, 3, 0);
  REQUIRE(teller.cause().peer() == 3);
  teller.hear_decision(Finding::death, 3, 1);
  REQUIRE(teller.decided() == std::vector<std::uint32_t>{3});
}

TEST_CASE("one who is accused does not decide for others") {
  Teller accused(0);
  accused.hear(Finding::death, 1, 0);
  accused.hear(Finding::death, 0, 1);
  REQUIRE(accused.decides_in() == 120ms);
  Teller teller(2);
  teller.hear(Finding::silence, 0, 3);
  teller.hear_decision(Finding::silence, 3, 0);
  REQUIRE(teller.cause().ok());
  Teller cut_off(3);
  cut_off.hear(Finding::cut_off, 3, 3);
  REQUIRE(cut_off.decides_in() == 20ms);
}
