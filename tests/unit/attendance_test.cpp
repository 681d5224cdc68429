#include "store/attendance.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace std::chrono_literals;
using hocket::store::Attendance;
using hocket::testing::ManualClock;

namespace {

/// What is announced, as "key=value key=value".
std::string due(Attendance& attendance, const ManualClock& clock, std::string_view there = "") {
  std::string text;
  const auto is_set = [&](const std::string& key) { return key == there; };
  for (const auto& [key, value] : attendance.take_due(clock.now(), is_set)) {
    text += (text.empty() ? "" : " ") + key + '=' + value;
  }
  return text;
}

void come(Attendance& attendance, const ManualClock& clock, int rank, int size = 3,
          const std::string& key = "entry/0/verdict") {
  attendance.add(
      static_cast<std::uint64_t>(100 + rank),
      {{{key, "lost " + std::to_string(rank)}, {"card", "none"}}, {.rank = rank, .size = size}},
      clock.now());
}

constexpr auto grace = Attendance::refusal_grace;

}  // namespace

TEST_CASE("who goes leaves what it said, once") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 1);
  attendance.add(7, {{{"card/1", "none"}}, {}}, clock.now());
  attendance.add(7, {{{"card/2", "none either"}}, {}}, clock.now());
  const auto said = attendance.remove(101);
  REQUIRE(said.size() == 2);
  REQUIRE(said[0].value == "lost 1");
  REQUIRE(said[1].key == "card");
  REQUIRE(attendance.remove(101).empty());
  REQUIRE(attendance.remove(7).front().key == "card/2");
  REQUIRE(attendance.next().is_never());
}

TEST_CASE("a will may be empty, also a member's") {
  ManualClock clock;
  Attendance attendance;
  attendance.add(7, {{}, {.rank = 1, .size = 2}}, clock.now());
  REQUIRE(attendance.remove(7).empty());
}

TEST_CASE("who was refused can't end a world that is complete, and still ends the next one") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 0);
  attendance.refuse({"", 2, "refused"}, clock.now());
  clock.advance(grace);
  REQUIRE(due(attendance, clock, "entry/0/verdict").empty());
  come(attendance, clock, 0, 3, "entry/1/verdict");
  clock.advance(grace);
  REQUIRE(due(attendance, clock) == "entry/1/verdict=refused");
}

TEST_CASE("a rank that is reported is told to those who wait for it, now and later") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 0);
  REQUIRE(attendance.report({"entry/0/", 2, "ended"}, clock.now()));
  REQUIRE(due(attendance, clock) == "entry/0/verdict=ended");
  REQUIRE(due(attendance, clock).empty());
  come(attendance, clock, 1, 3, "entry/0/7/verdict");
  REQUIRE(due(attendance, clock) == "entry/0/7/verdict=ended");
}

TEST_CASE("a rank that is reported concerns neither other worlds nor those where it is") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 0, 2, "entry/0/small");     // rank 2 is none of its
  come(attendance, clock, 1, 3, "entry/1/later");     // of another attempt
  come(attendance, clock, 2, 3, "entry/0/complete");  // it has come there
  attendance.add(1, {{{"card/0", "none"}}, {}}, clock.now());
  REQUIRE(attendance.report({"entry/0/", 2, "ended"}, clock.now()));
  REQUIRE(due(attendance, clock).empty());
}

TEST_CASE("a rank that was refused may come after all") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 0);
  attendance.refuse({"", 2, "refused"}, clock.now());
  REQUIRE(due(attendance, clock).empty());
  clock.advance(grace - 1ms);
  REQUIRE(due(attendance, clock).empty());
  come(attendance, clock, 2);
  clock.advance(1h);
  REQUIRE(due(attendance, clock).empty());
}

TEST_CASE("a rank that was refused and does not come is told once the time is over") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 0);
  attendance.refuse({"", 2, "refused"}, clock.now());
  clock.advance(1s);
  attendance.refuse({"", 2, "refused again"}, clock.now());
  clock.advance(grace - 1ms);
  REQUIRE(due(attendance, clock).empty());
  REQUIRE(attendance.next().at() == clock.now() + 1ms);
  clock.advance(1ms);
  REQUIRE(due(attendance, clock) == "entry/0/verdict=refused again");
  // It ends one start, not the next one too.
  come(attendance, clock, 0, 3, "entry/1/verdict");
  clock.advance(grace);
  REQUIRE(due(attendance, clock).empty());
}

TEST_CASE("the time begins when the first rank comes, if that is later; and is not for ever") {
  ManualClock clock;
  Attendance attendance;
  attendance.refuse({"", 2, "refused"}, clock.now());
  clock.advance(5s);
  come(attendance, clock, 0);
  REQUIRE(due(attendance, clock).empty());
  clock.advance(grace);
  REQUIRE(due(attendance, clock) == "entry/0/verdict=refused");

  attendance.refuse({"", 1, "refused"}, clock.now());
  clock.advance(Attendance::refusal_memory);
  come(attendance, clock, 0, 3, "entry/1/verdict");
  clock.advance(grace);
  REQUIRE(due(attendance, clock).empty());
}

TEST_CASE("who does not say which rank it is may be any that is missing, while one is") {
  ManualClock clock;
  Attendance attendance;
  come(attendance, clock, 0, 2, "a");
  attendance.refuse({"", -1, "refused"}, clock.now());
  clock.advance(grace);
  REQUIRE(due(attendance, clock) == "a=refused");
  come(attendance, clock, 0, 2, "b");
  attendance.refuse({"", -1, "refused"}, clock.now());
  come(attendance, clock, 1, 2, "b");
  clock.advance(grace);
  REQUIRE(due(attendance, clock).empty());
}

TEST_CASE("what strangers say is bounded, as what members report") {
  ManualClock clock;
  Attendance attendance;
  for (int rank = 0; rank < 100'000; ++rank) {
    attendance.refuse({"", rank, "refused"}, clock.now());
  }
  std::size_t reports = 0;
  while (attendance.report({"entry/", 1, "ended"}, clock.now())) ++reports;
  REQUIRE(reports == Attendance::reports_max);
}
