#include "health/cause_finder.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "health/silence.hpp"
#include "support/catch.hpp"
#include "support/manual_clock.hpp"

using namespace std::chrono_literals;
using hocket::StatusCode;
using hocket::health::CauseFinder;
using hocket::health::Finding;
using hocket::health::nobody;
using hocket::health::Notice;
using hocket::health::Silence;
using hocket::testing::ManualClock;

namespace {

constexpr std::uint64_t world = 0;
constexpr std::uint64_t half = 7;

Notice death(std::uint32_t culprit, std::uint32_t origin, std::int64_t time) {
  return {.finding = Finding::death,
          .origin = origin,
          .culprit = culprit,
          .time = time,
          .what = "it has died"};
}

Notice silence(std::uint32_t culprit, std::uint32_t origin, std::int64_t time) {
  return {.finding = Finding::silence, .origin = origin, .culprit = culprit, .time = time};
}

Notice failure(std::uint64_t communicator, std::uint32_t culprit, std::uint32_t origin,
               std::int64_t time, StatusCode code = StatusCode::peer_lost) {
  return {.finding = Finding::failure,
          .origin = origin,
          .culprit = culprit,
          .communicator = communicator,
          .code = code,
          .time = time,
          .operation = "all_reduce #12",
          .step = 3};
}

/// What a rank makes of notices that come in this order.
std::vector<Notice> found(const std::vector<Notice>& notices) {
  const ManualClock clock;
  CauseFinder finder;
  for (const Notice& each : notices) static_cast<void>(finder.add(each, clock.now()));
  return finder.decide();
}

}  // namespace

TEST_CASE("it decides a moment after the last news, but not much later than the first") {
  ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.due().is_never());
  const auto begin = clock.now();
  REQUIRE(finder.add(death(2, 1, 5), clock.now()));
  REQUIRE(finder.due().at() == begin + 20ms);
  REQUIRE(finder.due_alone().at() == begin + 120ms);
  clock.advance(10ms);
  REQUIRE_FALSE(finder.add(death(2, 1, 5), clock.now()));
  REQUIRE(finder.due().at() == begin + 20ms);
  for (std::uint32_t rank = 3; rank < 12; ++rank) {
    REQUIRE(finder.add(death(rank, 1, 6), clock.now()));
    REQUIRE(finder.due().at() == std::min(clock.now() + 20ms, begin + 80ms));
    clock.advance(10ms);
  }
  REQUIRE(finder.due_alone().at() == begin + 120ms);
  REQUIRE(finder.decide().size() == 10);
  REQUIRE(finder.due().is_never());
  REQUIRE(finder.due_alone().is_never());
}

TEST_CASE("of calls that differ it waits for the rank that has seen both") {
  ManualClock clock;
  CauseFinder finder;
  const auto begin = clock.now();
  Notice told = failure(half, 2, 1, 40, StatusCode::mismatch);
  told.is_second_hand = true;
  REQUIRE(finder.add(told, clock.now()));
  REQUIRE(finder.due().at() == begin + 80ms);
  clock.advance(30ms);
  REQUIRE(finder.add(failure(half, 0, 2, 50, StatusCode::mismatch), clock.now()));
  REQUIRE(finder.due().at() == begin + 50ms);
  REQUIRE(finder.decide().front().origin == 2);
}

TEST_CASE("what another has decided is taken over once, with all that it explains") {
  const ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.add(death(2, 1, 50), clock.now()));
  REQUIRE(finder.add(failure(half, 2, 0, 40), clock.now()));
  REQUIRE(finder.accuser_of(2) == 1);
  const auto cause = finder.news_of(death(2, 3, 40));  // of whose finding this rank has not heard
  REQUIRE(cause->origin == 3);
  finder.settle(*cause, clock.now());
  REQUIRE_FALSE(finder.news_of(death(2, 1, 50)));
  REQUIRE(finder.due().is_never());
  REQUIRE(finder.due_alone().is_never());
  REQUIRE(finder.told().empty());
  REQUIRE(finder.causes().size() == 1);
  REQUIRE(finder.is_gone(2));
  REQUIRE_FALSE(finder.accuser_of(2));
}

TEST_CASE("what a decision says nothing of is still to be decided, in as much time") {
  ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.add(death(2, 1, 50), clock.now()));
  REQUIRE(finder.add(failure(half, nobody, 2, 40, StatusCode::timeout), clock.now()));
  REQUIRE(finder.add(failure(half, nobody, 0, 60, StatusCode::timeout), clock.now()));
  clock.advance(100ms);
  finder.settle(death(2, 1, 50), clock.now());
  REQUIRE(finder.due().at() == clock.now() + 20ms);
  REQUIRE(finder.due_alone().at() == clock.now() + 120ms);
  const auto rest = finder.decide();
  REQUIRE(rest.size() == 1);
  REQUIRE(rest[0].origin == 0);  // what the dead rank said counts no more
}

TEST_CASE("this rank's own failure is to itself what it was, whoever decides") {
  const ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.add(failure(half, nobody, 1, 10, StatusCode::system_error), clock.now()));
  const auto cause = finder.news_of(failure(half, nobody, 1, 10, StatusCode::aborted));
  REQUIRE(cause->code == StatusCode::system_error);
  REQUIRE(finder.news_of(failure(half, nobody, 1, 10, StatusCode::timeout))->code ==
          StatusCode::timeout);
}

TEST_CASE("a communicator whose end is known is not found out again, however long ago it was") {
  const ManualClock clock;
  CauseFinder finder;
  for (std::uint64_t id = 1; id <= 300; ++id) {
    finder.settle(failure(id, nobody, 1, 10), clock.now());
  }
  finder.forget(299);
  for (const std::uint64_t id : {1U, 299U, 300U}) {
    REQUIRE_FALSE(finder.news_of(failure(id, nobody, 1, 10)));
    REQUIRE_FALSE(finder.add(failure(id, nobody, 1, 10), clock.now()));
  }
}

TEST_CASE("what is being found out is found out, also if this rank needs it no more") {
  const ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.add(failure(half, nobody, 1, 10, StatusCode::system_error), clock.now()));
  finder.forget(half);
  REQUIRE(finder.decide().size() == 1);
}

TEST_CASE("all ranks find the same, whatever comes first") {
  const std::vector<Notice> one_order = {death(2, 1, 50),          failure(half, 2, 0, 40),
                                         failure(half, 2, 3, 45),  death(2, 3, 48),
                                         failure(world, 2, 4, 60), death(5, 1, 70)};
  std::vector<Notice> order = one_order;
  for (std::size_t turn = 0; turn < order.size(); ++turn) {
    std::rotate(order.begin(), order.begin() + 1, order.end());
    const auto causes = found(order);
    REQUIRE(causes.size() == 2);
    REQUIRE(causes[0].finding == Finding::death);
    REQUIRE(causes[0].culprit == 2);
    REQUIRE(causes[0].time == 40);
    REQUIRE(causes[0].operation == "all_reduce #12");
    REQUIRE(causes[0].step == 3);
    REQUIRE(causes[1].culprit == 5);
  }
}

TEST_CASE("what says nothing new is not passed on") {
  const ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.add(death(2, 1, 50), clock.now()));
  REQUIRE_FALSE(finder.add(death(2, 1, 50), clock.now()));
  REQUIRE(finder.add(death(2, 3, 60), clock.now()));
  REQUIRE_FALSE(finder.add(death(2, 3, 70), clock.now()));
  REQUIRE(finder.add(death(2, 3, 40), clock.now()));
  REQUIRE(finder.add(failure(half, 2, 0, 90), clock.now()));
  REQUIRE(finder.decide().size() == 1);
  REQUIRE_FALSE(finder.add(death(2, 4, 10), clock.now()));
  // A failure that names who is gone is no new event.
  REQUIRE_FALSE(finder.add(failure(world, 2, 4, 10), clock.now()));
  REQUIRE(finder.is_gone(2));
  REQUIRE_FALSE(finder.is_gone(1));
}

TEST_CASE("a mismatch says more than what follows from it") {
  const auto causes = found({failure(half, 1, 0, 10, StatusCode::aborted),
                             failure(half, 1, 2, 20, StatusCode::mismatch)});
  REQUIRE(causes.size() == 1);
  REQUIRE(causes[0].code == StatusCode::mismatch);
}

TEST_CASE("who is late is at the end of the chain of those who wait") {
  const auto waits = [](std::uint32_t origin, std::uint32_t awaited, std::int64_t time) {
    Notice notice = failure(half, awaited, origin, time, StatusCode::timeout);
    notice.awaited = awaited;
    return notice;
  };
  const auto causes = found({waits(1, 0, 10), waits(2, 1, 11), waits(0, 3, 12)});
  REQUIRE(causes.size() == 1);
  REQUIRE(causes[0].culprit == 3);
  REQUIRE(causes[0].origin == 0);
  // They wait for each other: no one is more late than the others.
  REQUIRE(found({waits(1, 0, 10), waits(0, 1, 11)}).front().code == StatusCode::timeout);
}

TEST_CASE("who hears nobody is believed by nobody") {
  const Notice deaf = {
      .finding = Finding::cut_off, .origin = 3, .culprit = 2, .time = 100, .what = "it is cut off"};
  const auto causes = found({silence(3, 2, 90), silence(1, 2, 91), deaf});
  REQUIRE(causes.size() == 1);
  REQUIRE(causes[0].finding == Finding::cut_off);
  REQUIRE(causes[0].culprit == 2);
  // Nor if another decides so.
  const ManualClock clock;
  CauseFinder finder;
  REQUIRE(finder.add(deaf, clock.now()));
  REQUIRE_FALSE(finder.news_of(silence(3, 2, 90)));
  finder.settle(deaf, clock.now());
  REQUIRE_FALSE(finder.news_of(silence(3, 2, 90)));
  // The accusation of another stands.
  REQUIRE(found({silence(3, 1, 90), deaf}).front().culprit == 3);
}

TEST_CASE("a cause concerns the communicators that have the culprit, or that failed") {
  const std::vector<Notice> causes = {failure(half, nobody, 1, 10, StatusCode::timeout),
                                      death(2, 1, 20)};
  const std::vector<std::uint32_t> all = {0, 1, 2, 3};
  const std::vector<std::uint32_t> some = {0, 1};
  REQUIRE(CauseFinder::first_for(causes, world, all)->culprit == 2);
  REQUIRE(CauseFinder::first_for(causes, half, all)->code == StatusCode::timeout);
  REQUIRE(CauseFinder::first_for(causes, world, some) == nullptr);
}

TEST_CASE("silence counts only while this rank itself could hear") {
  ManualClock clock;
  Silence neighbour(250ms, clock.now());
  clock.advance(250ms);
  REQUIRE(neighbour.look(clock.now()) == 250ms);
  clock.advance(10s);  // stopped
  REQUIRE(neighbour.look(clock.now()) == 750ms);
  neighbour.hear(clock.now());
  clock.advance(1ms);
  REQUIRE(neighbour.look(clock.now()) == 1ms);
}

TEST_CASE("a notice arrives as it was sent, and nothing else is taken for one") {
  const Notice sent = failure(half, 2, 1, 1'795'669'521'567'000'000);
  const std::string bytes = encode(sent);
  const auto came = hocket::health::decode_notice(bytes);
  REQUIRE(came.ok());
  REQUIRE(encode(*came) == bytes);
  REQUIRE(came->status().peer() == 2);
  REQUIRE(came->status().step() == 3);
  REQUIRE(came->status().operation() == "all_reduce #12");
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    REQUIRE_FALSE(hocket::health::decode_notice(bytes.substr(0, length)).ok());
  }
  REQUIRE_FALSE(hocket::health::decode_notice(bytes + "x").ok());
  std::string other = bytes;
  other[0] = 9;
  REQUIRE_FALSE(hocket::health::decode_notice(other).ok());
}
