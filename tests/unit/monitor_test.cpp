// Several monitors in one process, over loopback.
#include "health/monitor.hpp"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/require.hpp"
#include "support/stopwatch.hpp"
#include "wire/tls.hpp"

using namespace std::chrono_literals;
using namespace hocket;
using health::Monitor;
using health::MonitorOptions;
using health::WatchedGroup;

namespace {

constexpr auto a_while = 10s;

template <class Condition>
bool comes_true(const Condition& condition) {
  const testing::Stopwatch stopwatch;
  while (!condition()) {
    if (stopwatch.elapsed() > a_while) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

/// A rank with one communicator.
struct Rank {
  std::unique_ptr<Monitor> monitor;
  std::vector<std::uint32_t> members;
  WatchedGroup group;
  std::atomic<int> failures = 0;
};

class Watchers {
 public:
  explicit Watchers(std::uint32_t size, wire::TlsMode tls = wire::TlsMode::off) {
    std::vector<Monitor::Contact> contacts;
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      auto monitor = Monitor::open({.rank = rank,
                                    .size = size,
                                    .hosts = {"127.0.0.1", "127.0.0.2"},
                                    .credentials = {.job = "test", .secret = "secret"},
                                    .tls = {.mode = tls},
                                    .failure_timeout = 250ms});
      ranks.push_back(std::make_unique<Rank>());
      ranks.back()->monitor = testing::require(std::move(monitor));
      contacts.push_back({ranks.back()->monitor->address(), "pid 7 on node"});
    }
    for (auto& each : ranks) {
      for (std::uint32_t rank = 0; rank < size; ++rank) each->members.push_back(rank);
      each->group.id = 5;
      each->group.members = each->members;
      each->group.fail = [&rank = *each](const Status&) { ++rank.failures; };
      each->monitor->add(each->group);
      REQUIRE(each->monitor->connect(contacts).ok());
    }
  }
  ~Watchers() {
    for (auto& each : ranks) each->monitor->remove(each->group);
  }

  std::vector<std::unique_ptr<Rank>> ranks;
};

Status a_failure() {
  return Status(StatusCode::mismatch, "rank 1 called another operation")
      .with_peer(1)
      .with_step(4)
      .with_hint("call the same");
}

}  // namespace

TEST_CASE("a failure of one rank becomes that of all, in the same words") {
  for (const auto tls : {wire::TlsMode::off, wire::TlsMode::psk}) {
    if (tls != wire::TlsMode::off && !wire::tls_support().ok()) continue;
    for (const std::uint32_t size : {2U, 3U, 4U, 7U, 16U}) {
      Watchers world(size, tls);
      Rank& first = *world.ranks.front();
      first.monitor->report(first.group, {.why = a_failure(), .operation = "all_reduce #9"});
      // 16 of them share one thread here, with their handshakes.
      REQUIRE(comes_true([&] { return !first.monitor->cause_of(first.group, false).ok(); }));
      const Status cause = first.monitor->cause_of(first.group, false);
      REQUIRE(cause.code() == StatusCode::mismatch);
      REQUIRE(cause.step() == 4);
      REQUIRE(cause.operation() == "all_reduce #9");
      for (std::uint32_t rank = 1; rank < size; ++rank) {
        Rank& each = *world.ranks[rank];
        REQUIRE(comes_true([&] { return each.failures == 1; }));
        REQUIRE(comes_true([&] { return !each.monitor->cause_of(each.group, false).ok(); }));
        REQUIRE(each.monitor->cause_of(each.group, false).to_string() == cause.to_string());
      }
      REQUIRE(first.failures == 0);  // it knows already
    }
  }
}

TEST_CASE("nothing is the matter while all live, nor when one leaves") {
  Watchers world(3);
  std::this_thread::sleep_for(700ms);
  Rank& leaver = *world.ranks[2];
  leaver.monitor->leave(Deadline::never());
  std::this_thread::sleep_for(700ms);
  for (const auto& each : world.ranks) {
    REQUIRE(each->failures == 0);
    REQUIRE(each->monitor->cause_of(each->group, false).ok());
  }
}

TEST_CASE("a question finds its way, also around one who has left") {
  Watchers world(4);
  std::atomic<int> asked = 0;
  world.ranks[3]->group.compare = [&](const health::Question& question) {
    if (question.from == 0 && question.index == 12 && question.tag == 99) ++asked;
    return Status();
  };
  const auto ask = [&] {
    world.ranks[0]->monitor->ask({.to = 3, .communicator = 5, .index = 12, .tag = 99});
    std::this_thread::sleep_for(10ms);
    return asked > 0;
  };
  REQUIRE(comes_true(ask));
  asked = 0;
  world.ranks[2]->monitor->leave(Deadline::never());
  REQUIRE(comes_true(ask));
}

TEST_CASE("who is asked tells all what differs, though its communicator has failed just before") {
  Watchers world(4);
  Rank& asked = *world.ranks[3];
  std::atomic<int> questions = 0;
  std::atomic<bool> has_failed = false;
  asked.group.compare = [&](const health::Question&) {
    ++questions;
    if (!has_failed) return Status();
    return Status(StatusCode::mismatch, "rank 1 called this, and rank 3 called that").with_peer(1);
  };
  const auto ask = [&] {
    world.ranks[1]->monitor->ask({.to = 3, .communicator = 5, .index = 1, .tag = 99});
    std::this_thread::sleep_for(10ms);
    return questions > 0;
  };
  REQUIRE(comes_true(ask));  // the ranks have found each other
  has_failed = true;
  asked.monitor->report(asked.group, {.why = Status(StatusCode::mismatch, "rank 1 says so"),
                                      .operation = "barrier() #2",
                                      .is_second_hand = true});
  ask();
  for (const auto& each : world.ranks) {
    const std::string text = each->monitor->cause_of(each->group, true).to_string();
    INFO(text);
    REQUIRE(text.find("called that") != text.npos);
    REQUIRE(text.find("barrier() #2") != text.npos);
  }
}

TEST_CASE("who has seen two calls that differ ends its own once it has told the others") {
  Watchers world(2);
  Rank& rank = *world.ranks[0];
  rank.monitor->report(rank.group, {.why = Status(StatusCode::mismatch, "two calls differ"),
                                    .ends_when_told = true});
  REQUIRE(comes_true([&] { return rank.failures == 1; }));
}

TEST_CASE("who is alone in knowing the cause does not wait for others") {
  Watchers world(2);
  Rank& rank = *world.ranks[0];
  rank.monitor->conclude(rank.group, Status(StatusCode::aborted, "enough"));
  REQUIRE(rank.monitor->cause_of(rank.group, false).what() == "enough");
  rank.monitor->conclude(rank.group, Status(StatusCode::aborted, "again"));
  REQUIRE(rank.monitor->cause_of(rank.group, false).what() == "enough");
}

TEST_CASE("without a secret nobody but this host may dial") {
  const auto monitor = Monitor::open({.size = 2, .hosts = {"0.0.0.0"}});
  REQUIRE(monitor.status().code() == StatusCode::permission_denied);
}
