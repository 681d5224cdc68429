#include "world/entry.hpp"

#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "store/hash_store.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using hocket::Deadline;
using hocket::Duration;
using hocket::monotonic_clock;
using hocket::Result;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::HashStore;
using hocket::world::enter;
using hocket::world::Entry;
using hocket::world::list_ranks;
using hocket::world::LocalRank;

namespace {

struct Comer {
  Entry entry = {};
  Duration delay = 0s;
  Duration patience = 30s;
};

struct Outcome {
  Result<LocalRank> local;
  Duration took;
};

Comer comer(int rank, int size, Duration delay = 0s) {
  return {.entry = {.rank = rank,
                    .size = size,
                    .host = "here",
                    .process = fmt::format("pid {} on node", 100 + rank),
                    .address = "10.0.0.1"},
          .delay = delay};
}

std::vector<Comer> comers(int size, int missing = -1) {
  std::vector<Comer> all;
  for (int rank = 0; rank < size; ++rank) {
    if (rank != missing) all.push_back(comer(rank, size));
  }
  return all;
}

/// What becomes of them, in that order, each in a thread with a handle of its own.
std::vector<Outcome> gather(HashStore& store, const std::vector<Comer>& all) {
  std::vector<Outcome> outcomes(all.size(), Outcome{Status(StatusCode::internal, "not run"), 0s});
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back(
        [&outcome = outcomes[i], &who = all[i], own = store.clone().value()]() mutable {
          std::this_thread::sleep_for(who.delay);
          const auto start = monotonic_clock().now();
          outcome.local = enter(*own, who.entry, Deadline::after(monotonic_clock(), who.patience));
          outcome.took = monotonic_clock().now() - start;
        });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void require_all_told(const std::vector<Outcome>& outcomes, StatusCode code,
                      std::string_view what) {
  for (const Outcome& outcome : outcomes) {
    const Status status = outcome.local.status();
    CAPTURE(status.to_string());
    REQUIRE(status.code() == code);
    REQUIRE(has(status.what(), what));
    REQUIRE_FALSE(status.hint().empty());
    REQUIRE(outcome.took < 10s);
  }
}

}  // namespace

TEST_CASE("a world of one is there at once") {
  HashStore store;
  const auto outcomes = gather(store, comers(1));
  REQUIRE(outcomes[0].local.ok());
  REQUIRE(outcomes[0].local->local_size == 1);
}

TEST_CASE("ranks may come in any order, and some late") {
  HashStore store;
  std::vector<Comer> all;
  for (const int rank : {7, 3, 0, 5, 1, 6, 2, 4}) {
    all.push_back(comer(rank, 8, rank == 0 ? 200ms : rank == 5 ? 400ms : 0ms));
  }
  const auto outcomes = gather(store, all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(outcomes[i].local.ok());
    REQUIRE(outcomes[i].local->local_rank == all[i].entry.rank);
    REQUIRE(outcomes[i].local->local_size == 8);
  }
}

TEST_CASE("each host counts its own ranks") {
  HashStore store;
  std::vector<Comer> all = comers(5);
  for (const std::size_t i : {1u, 3u, 4u}) all[i].entry.host = "there";
  const auto outcomes = gather(store, all);
  const std::vector<std::pair<int, int>> expected = {{0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(outcomes[i].local.ok());
    REQUIRE(std::pair(outcomes[i].local->local_rank, outcomes[i].local->local_size) == expected[i]);
  }
}

TEST_CASE("the store keeps the timeout that it had") {
  HashStore store;
  store.set_timeout(77s);
  REQUIRE(enter(store, comer(0, 1).entry, Deadline::after(monotonic_clock(), 5s)).ok());
  REQUIRE(store.timeout() == 77s);
}

TEST_CASE("two processes of one rank are told of each other, and so is everybody") {
  HashStore store;
  std::vector<Comer> all = comers(4, 3);
  all.push_back(comer(1, 4, 300ms));
  all.back().entry.process = "pid 999 on elsewhere";
  const auto outcomes = gather(store, all);
  require_all_told(outcomes, StatusCode::already_exists,
                   "two processes are rank 1: pid 101 on node and pid 999 on elsewhere");
  REQUIRE(outcomes[0].local.status().peer() == 1);
  REQUIRE(outcomes[2].local.status().rank() == 2);
}

TEST_CASE("two opinions of the size are told to everybody") {
  HashStore store;
  std::vector<Comer> all = comers(4, 3);
  all.push_back(comer(3, 5, 300ms));
  const auto outcomes = gather(store, all);
  require_all_told(outcomes, StatusCode::mismatch, "4 for rank ");
  require_all_told(outcomes, StatusCode::mismatch, "but 5 for rank 3 (pid 103 on node)");
}

TEST_CASE("a size that begins with another is another") {
  HashStore store;
  std::vector<Comer> all = {comer(0, 10), comer(1, 1000, 200ms)};
  all[1].entry.rank = 1;
  require_all_told(gather(store, all), StatusCode::mismatch, "10 for rank 0");
}

TEST_CASE("who gives up says which ranks are missing, and the others go with it") {
  HashStore store;
  std::vector<Comer> all = {comer(0, 8), comer(3, 8), comer(4, 8), comer(7, 8), comer(1, 8)};
  all[2].patience = 1s;
  const auto outcomes = gather(store, all);
  require_all_told(outcomes, StatusCode::timeout,
                   "3 of 8 ranks are missing: 2, 5, 6; rank 4 (pid 104 on node) waits no longer");
  REQUIRE(outcomes[2].took < 5s);
  REQUIRE(outcomes[2].took > 500ms);
}

TEST_CASE("a single missing rank is one") {
  HashStore store;
  std::vector<Comer> all = comers(3, 1);
  for (Comer& each : all) each.patience = 1s;
  require_all_told(gather(store, all), StatusCode::timeout, "1 of 3 ranks is missing: 1;");
}

TEST_CASE("who comes too late hears what went wrong before") {
  HashStore store;
  std::vector<Comer> all = {comer(0, 2), comer(1, 2, 1500ms)};
  all[0].patience = 500ms;
  require_all_told(gather(store, all), StatusCode::timeout, "1 of 2 ranks is missing: 1;");
}

TEST_CASE("who comes to a complete world is refused alone") {
  HashStore store;
  for (const auto& outcome : gather(store, comers(3))) REQUIRE(outcome.local.ok());
  require_all_told(gather(store, {comer(2, 3)}), StatusCode::already_exists,
                   "two processes are rank 2");
  require_all_told(gather(store, {comer(3, 4)}), StatusCode::mismatch, "but 4 for rank 3");
}

TEST_CASE("another attempt is another world") {
  HashStore store;
  for (int attempt = 0; attempt < 3; ++attempt) {
    std::vector<Comer> all = comers(3);
    for (Comer& each : all) each.entry.world.attempt = attempt;
    for (const auto& outcome : gather(store, all)) REQUIRE(outcome.local.ok());
  }
}

TEST_CASE("worlds of other numbers and names are apart, and messages name them") {
  HashStore store;
  for (const char* name : {"", "loader"}) {
    for (int number = 0; number < 2; ++number) {
      std::vector<Comer> all = comers(3);
      for (Comer& each : all) each.entry.world = {.name = name, .number = number};
      for (const auto& outcome : gather(store, all)) REQUIRE(outcome.local.ok());
    }
  }
  Comer late = comer(2, 3);
  late.entry.world.number = 1;
  require_all_told(gather(store, {late}), StatusCode::already_exists,
                   "two processes are rank 2 of world 2: pid 102 on node and pid 102 on node");
  std::vector<Comer> some = comers(3, 1);
  for (Comer& each : some) {
    each.entry.world.number = 2;
    each.patience = 300ms;
  }
  require_all_told(gather(store, some), StatusCode::timeout,
                   "1 of 3 ranks of world 3 is missing: 1;");
}

TEST_CASE("a loopback address is none where there are several hosts") {
  for (const bool has_several : {false, true}) {
    HashStore store;
    std::vector<Comer> all = comers(3);
    all[1].entry.is_loopback = true;
    all[1].entry.address = "127.0.0.1";
    if (has_several) all[2].entry.host = "there";
    const auto outcomes = gather(store, all);
    if (has_several) {
      require_all_told(outcomes, StatusCode::invalid_argument,
                       "rank 1 (pid 101 on node, 127.0.0.1) has only a loopback address");
    } else {
      for (const auto& outcome : outcomes) REQUIRE(outcome.local.ok());
    }
  }
}

TEST_CASE("many come at once") {
  HashStore store;
  for (const auto& outcome : gather(store, comers(64))) REQUIRE(outcome.local.ok());
}

TEST_CASE("no time at all is a timeout, at once") {
  HashStore store;
  Comer only = comer(0, 2);
  only.patience = 0s;
  require_all_told(gather(store, {only}), StatusCode::timeout, "1 of 2 ranks is missing: 1;");
}

TEST_CASE("a process describes itself") {
  const Entry mine = hocket::world::describe_process();
  REQUIRE(has(mine.process, "pid "));
  REQUIRE(has(mine.process, " on "));
  REQUIRE(mine.host.size() > 36);
  REQUIRE(hocket::world::describe_process().host == mine.host);
}

TEST_CASE("ranks are listed in short") {
  REQUIRE(list_ranks({}).empty());
  REQUIRE(list_ranks({2}) == "2");
  REQUIRE(list_ranks({2, 3}) == "2, 3");
  REQUIRE(list_ranks({2, 3, 4, 5, 7}) == "2-5, 7");
  REQUIRE(list_ranks({0, 2, 3, 5, 6, 7}) == "0, 2, 3, 5-7");
  std::vector<int> even(1000);
  std::iota(even.begin(), even.end(), 0);
  for (int& rank : even) rank *= 2;
  const std::string list = list_ranks(even);
  REQUIRE(list.size() <= hocket::limits::rank_list_bytes_max);
  REQUIRE(list.starts_with("0, 2, 4, "));
  REQUIRE(list.ends_with("…"));
}
