#include "world/runs.hpp"

#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "store/hash_store.hpp"
#include "support/catch.hpp"
#include "world/entry.hpp"
#include "world/number.hpp"

using namespace std::chrono_literals;
using hocket::Deadline;
using hocket::Duration;
using hocket::monotonic_clock;
using hocket::Result;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::HashStore;
using hocket::world::enter_run;
using hocket::world::Entry;
using hocket::world::entry_key;
using hocket::world::rank_key;
using hocket::world::WorldId;

namespace {

/// A process that comes as this rank.
struct Comer {
  int rank = 0;
  int pid = 0;
  Duration delay = 0s;
  Duration patience = 20s;
  int size = 3;
};

struct Outcome {
  Status status = Status(StatusCode::internal, "not run");
  std::string run = {};
  Duration took = {};
};

/// What becomes of them, each in a thread with a handle of its own.
std::vector<Outcome> gather(HashStore& store, const std::vector<Comer>& all) {
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&outcome = outcomes[i], &who = all[i], own = store.clone().value()] {
      std::this_thread::sleep_for(who.delay);
      Entry entry = {.rank = who.rank,
                     .size = who.size,
                     .host = "here",
                     .process = fmt::format("pid {}", who.pid),
                     .address = "10.0.0.1"};
      entry.world.name = "job";
      const auto start = monotonic_clock().now();
      const auto local = enter_run(*own, entry, Deadline::after(monotonic_clock(), who.patience));
      outcome = {local.status(), entry.world.run, monotonic_clock().now() - start};
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

/// Returns the run that all of them are in.
std::string require_together(const std::vector<Outcome>& outcomes) {
  for (const Outcome& each : outcomes) {
    CAPTURE(each.status.to_string());
    REQUIRE(each.status.ok());
    REQUIRE(each.run == outcomes.front().run);
  }
  return outcomes.front().run;
}

std::vector<Comer> attempt(int number, Duration rank_0_comes_after = 0s) {
  std::vector<Comer> all;
  for (int rank = 0; rank < 3; ++rank) {
    all.push_back(
        {.rank = rank, .pid = 10 * number + rank, .delay = rank == 0 ? rank_0_comes_after : 0s});
  }
  return all;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("ranks that are started again meet again in the same store") {
  HashStore store;
  std::string before;
  for (int number = 1; number < 5; ++number) {
    const std::string run = require_together(gather(store, attempt(number, number % 2 * 60ms)));
    REQUIRE(run != before);
    before = run;
  }
}

TEST_CASE("one that was not there before does not complete the run of those that have ended") {
  HashStore store;
  std::vector<Comer> some = attempt(1);
  some.pop_back();  // rank 2 ends before it comes
  for (Comer& each : some) each.patience = 300ms;
  for (const Outcome& each : gather(store, some)) {
    REQUIRE(each.status.code() == StatusCode::timeout);
    REQUIRE(has(each.status.what(), "1 of 3 ranks of world \"job\" is missing: 2;"));
  }
  require_together(gather(store, attempt(2, 100ms)));
}

TEST_CASE("who would complete a run whose other ranks were killed follows rank 0 to the next") {
  HashStore store;
  const WorldId killed = {.name = "job", .run = "1"};
  REQUIRE(store.set(entry_key({.name = "job"}, "run"), "1").ok());
  REQUIRE(store.set(entry_key(killed, "size"), "3 for rank 0 (pid 10)").ok());
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(store.set(rank_key(killed, rank), fmt::format("pid {}", 10 + rank)).ok());
    REQUIRE(store.append(entry_key(killed, "host/here"), fmt::format("{} ", rank)).ok());
    REQUIRE(store.add(entry_key(killed, "arrived"), 1).ok());
  }
  require_together(gather(store, attempt(2, 200ms)));
  REQUIRE(store.check({entry_key(killed, "all")}).value());  // it was there
}

TEST_CASE("two processes of one rank are told of each other") {
  HashStore store;
  require_together(gather(store, attempt(1)));
  const auto late = gather(store, {{.rank = 2, .pid = 99, .patience = 200ms}});
  CAPTURE(late[0].status.to_string());
  REQUIRE(late[0].status.code() == StatusCode::already_exists);
  REQUIRE(
      has(late[0].status.what(), "rank 2 of world \"job\" was pid 12 before, and rank 0 has not"));
  REQUIRE(has(late[0].status.what(), "pid 99 waits no longer"));
}

TEST_CASE("the first of two processes of rank 0 is told at once") {
  HashStore store;
  const auto outcomes = gather(store, {{.rank = 0, .pid = 10},
                                       {.rank = 0, .pid = 99, .delay = 100ms},
                                       {.rank = 1, .pid = 11, .delay = 200ms},
                                       {.rank = 2, .pid = 12}});
  REQUIRE(outcomes[0].status.code() == StatusCode::already_exists);
  REQUIRE(has(outcomes[0].status.what(), "another process is rank 0 of world \"job\": pid 99"));
  REQUIRE(outcomes[0].took < 5s);
  for (std::size_t i = 1; i < outcomes.size(); ++i) REQUIRE(outcomes[i].status.ok());
}

TEST_CASE("who comes where something goes wrong is told, though later") {
  HashStore store;
  const auto outcomes = gather(store, {{.rank = 0, .pid = 10},
                                       {.rank = 1, .pid = 11, .size = 4},
                                       {.rank = 2, .pid = 12, .delay = 300ms, .patience = 300ms}});
  for (const Outcome& each : outcomes) {
    CAPTURE(each.status.to_string());
    REQUIRE(each.status.code() == StatusCode::mismatch);
  }
}

TEST_CASE("without rank 0 the others wait for it, and say so") {
  HashStore store;
  const auto alone = gather(store, {{.rank = 1, .pid = 11, .patience = 100ms}});
  REQUIRE(alone[0].status.code() == StatusCode::timeout);
  REQUIRE(
      has(alone[0].status.what(), "rank 0 of world \"job\" is missing; rank 1 (pid 11) waits no"));
  REQUIRE(alone[0].took < 5s);
}
