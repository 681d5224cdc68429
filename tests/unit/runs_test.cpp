#include "world/runs.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
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
using hocket::Status;
using hocket::StatusCode;
using hocket::store::HashStore;
using hocket::store::Store;
using hocket::world::enter_run;
using hocket::world::Entry;
using hocket::world::entry_key;
using hocket::world::rank_key;
using hocket::world::WorldId;

namespace {

/// What a process waits for before it comes.
using Moment = std::function<bool(Store&)>;

const WorldId job = {.name = "job"};

WorldId newest(Store& store) {
  const auto run = store.get(entry_key(job, "run"));
  return {.name = "job", .run = run.ok() ? *run : ""};
}

bool has_key(Store& store, const std::string& key) { return store.check({key}).value(); }

Moment has_come(int rank, const std::string& process) {
  return [rank, process](Store& store) {
    const std::string key = rank_key(newest(store), rank);
    return has_key(store, key) && store.get(key).value() == process;
  };
}

Moment is_written(const WorldId& world, std::string_view key) {
  return [key = entry_key(world, key)](Store& store) { return has_key(store, key); };
}

/// A process that comes as this rank.
struct Comer {
  int rank = 0;
  int pid = 0;
  int size = 3;
  Duration patience = 20s;
  std::vector<Moment> after = {};
};

struct Outcome {
  Status status = Status(StatusCode::internal, "not run");
  std::string run = {};
  Duration took = {};
};

Outcome come(Store& store, const Comer& who) {
  Entry entry = {.rank = who.rank,
                 .size = who.size,
                 .world = job,
                 .host = "here",
                 .process = fmt::format("pid {}", who.pid),
                 .address = "10.0.0.1"};
  const auto start = monotonic_clock().now();
  const auto local = enter_run(store, entry, Deadline::after(monotonic_clock(), who.patience));
  return {local.status(), entry.world.run, monotonic_clock().now() - start};
}

/// What becomes of them, each in a thread with a handle of its own.
std::vector<Outcome> gather(HashStore& store, const std::vector<Comer>& all) {
  std::vector<Outcome> outcomes(all.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < all.size(); ++i) {
    threads.emplace_back([&outcome = outcomes[i], &who = all[i], own = store.clone().value()] {
      own->set_timeout(20s);
      const Deadline moments = Deadline::after(monotonic_clock(), 20s);
      for (const Moment& moment : who.after) {
        while (!moment(*own) && !moments.passed(monotonic_clock().now())) {
          std::this_thread::sleep_for(1ms);
        }
      }
      outcome = come(*own, who);
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

/// Rank 0 comes after that moment.
std::vector<Comer> attempt(int number, const std::vector<Moment>& after = {}, int size = 3) {
  std::vector<Comer> all;
  for (int rank = 0; rank < size; ++rank) {
    all.push_back({.rank = rank, .pid = 10 * number + rank, .size = size});
  }
  all.front().after = after;
  return all;
}

/// What ranks 0 and 1 of 3 leave that are killed while they wait for rank 2.
WorldId leave_killed(Store& store) {
  WorldId killed = {.name = "job", .run = "1"};
  REQUIRE(store.set(entry_key(job, "run"), "1").ok());
  REQUIRE(store.set(entry_key(killed, "before"), "").ok());
  REQUIRE(store.set(entry_key(killed, "size"), "3 for rank 0 (pid 10)").ok());
  for (int rank = 0; rank < 2; ++rank) {
    REQUIRE(store.set(rank_key(killed, rank), fmt::format("pid {}", 10 + rank)).ok());
    REQUIRE(store.append(entry_key(killed, "host/here"), fmt::format("{} ", rank)).ok());
    REQUIRE(store.add(entry_key(killed, "arrived"), 1).ok());
  }
  return killed;
}

/// All of them try until they are together; one comes later than the others, who have failed then.
/// Returns in how many tries they have met.
int tries_until_together(int late) {
  HashStore store;
  std::atomic<bool> has_failed = false;
  std::atomic<int> most = 0;
  std::vector<std::thread> threads;
  std::vector<std::string> runs(3);
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank, own = store.clone().value()] {
      while (rank == late && !has_failed) std::this_thread::sleep_for(1ms);
      for (int i = 1; i < 20 && runs[static_cast<std::size_t>(rank)].empty(); ++i) {
        const Outcome outcome = come(*own, {.rank = rank, .pid = 10 + rank, .patience = 2s});
        if (outcome.status.ok()) runs[static_cast<std::size_t>(rank)] = outcome.run;
        has_failed = has_failed || !outcome.status.ok();
        most = std::max(most.load(), i);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE_FALSE(runs[0].empty());
  REQUIRE(runs == std::vector<std::string>(3, runs[0]));
  return most;
}

/// Another store, which does not answer any more once a key is there.
class Leaving final : public Store {
 public:
  Leaving(std::unique_ptr<Store> whole, Moment moment)
      : whole_(std::move(whole)), moment_(std::move(moment)) {}

  hocket::Result<std::unique_ptr<Store>> clone() override {
    return std::unique_ptr<Store>(std::make_unique<Leaving>(whole_->clone().value(), moment_));
  }
  std::string describe() const override { return "a store that leaves"; }

 private:
  hocket::store::Reply perform(hocket::store::Request request) override {
    if (has_left_) return {.status = {StatusCode::peer_lost, "the store has gone"}};
    hocket::store::Reply reply = whole_->perform(std::move(request));
    has_left_ = moment_(*whole_);
    return reply;
  }

  std::unique_ptr<Store> whole_;
  Moment moment_;
  std::atomic<bool> has_left_ = false;
};

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

TEST_CASE("ranks that are started again meet again in the same store") {
  HashStore store;
  std::string before;
  for (int number = 1; number < 5; ++number) {
    const std::string run = require_together(gather(store, attempt(number)));
    REQUIRE(run != before);
    before = run;
  }
}

TEST_CASE("a late rank leaves a run of killed ranks and joins the next") {
  HashStore store;
  const WorldId killed = leave_killed(store);
  require_together(gather(store, attempt(2, {is_written(killed, "all")})));
}

TEST_CASE("ranks that are started again may be more or fewer") {
  for (const int size : {2, 4}) {
    HashStore store;
    const WorldId killed = leave_killed(store);
    std::vector<Moment> after;
    if (size == 4) after = {is_written(killed, "verdict")};  // by rank 2, which comes there first
    require_together(gather(store, attempt(2, after, size)));
    require_together(gather(store, attempt(3, {}, 5)));  // behind a run that was complete
  }
}

TEST_CASE("where a run has failed, the next start waits for rank 0") {
  HashStore store;
  std::vector<Comer> some = attempt(1);
  some.pop_back();
  for (Comer& each : some) each.patience = 1s;
  for (const Outcome& each : gather(store, some)) {
    CAPTURE(each.status.to_string());
    REQUIRE(each.status.code() == StatusCode::timeout);
    REQUIRE(has(each.status.what(), "1 of 3 ranks of world \"job\" is missing: 2;"));
  }
  // Rank 2, of which the first run knows nothing, is told of its end, unless rank 0 comes.
  const Outcome alone = come(store, {.rank = 2, .pid = 22, .patience = 200ms});
  REQUIRE(has(alone.status.what(), "is missing: 2;"));
  require_together(gather(store, attempt(3)));
}

TEST_CASE("a rank is told what went wrong though the store goes at once") {
  HashStore store;
  const Moment is_over = [](Store& each) {
    return has_key(each, entry_key(newest(each), "verdict"));
  };
  std::vector<Outcome> outcomes(2);
  std::thread rank_0([&] { outcomes[0] = come(store, {.rank = 0, .pid = 10, .patience = 1s}); });
  Leaving leaving(store.clone().value(), is_over);
  outcomes[1] = come(leaving, {.rank = 1, .pid = 11, .patience = 20s});
  rank_0.join();
  for (const Outcome& each : outcomes) {
    CAPTURE(each.status.to_string());
    REQUIRE(each.status.code() == StatusCode::timeout);
    REQUIRE(has(each.status.what(), "is missing: 2;"));
  }
}

TEST_CASE("a rank that joins once more than rank 0 is told so, and not of another process") {
  HashStore store;
  require_together(gather(store, attempt(1)));
  const Outcome again = come(store, {.rank = 1, .pid = 11, .patience = 200ms});
  REQUIRE(again.status.code() == StatusCode::timeout);
  REQUIRE(has(again.status.what(), "rank 0 of world \"job\" is missing;"));
  const Outcome rank_0 = come(store, {.rank = 0, .pid = 10, .patience = 200ms});
  REQUIRE(rank_0.status.code() == StatusCode::timeout);
  REQUIRE_FALSE(has(rank_0.status.to_string(), "another process"));
}

TEST_CASE("a store that does not set what is missing is refused") {
  HashStore whole;
  class Stubborn final : public Store {
   public:
    explicit Stubborn(Store& store) : whole_(store) {}
    hocket::Result<std::unique_ptr<Store>> clone() override { return whole_.clone(); }
    std::string describe() const override { return "a store"; }

   private:
    hocket::store::Reply perform(hocket::store::Request request) override {
      if (request.kind == hocket::store::Kind::compare_set) return {.values = {nullptr}};
      return whole_.perform(std::move(request));
    }
    Store& whole_;
  } store(whole);
  const Outcome outcome = come(store, {.rank = 0, .pid = 10, .patience = 2s});
  CAPTURE(outcome.status.to_string());
  REQUIRE(outcome.status.code() == StatusCode::protocol_error);
}

TEST_CASE("ranks that try again meet, whoever was late") {
  CHECK(tries_until_together(0) <= 2);
  CHECK(tries_until_together(1) <= 2);
}

TEST_CASE("rank 0 calls away who waits in a run that its successor had no time to end") {
  HashStore store;
  const WorldId killed = leave_killed(store);
  const WorldId link = {.name = "job", .run = "2"};  // whose rank 0 died when it had named it
  REQUIRE(store.set(entry_key(link, "before"), "1").ok());
  REQUIRE(store.set(entry_key(link, "verdict"), "somebody gave up there").ok());
  // Rank 2 waits in the first one.
  Outcome waiting;
  std::thread rank_2([&, own = store.clone().value()] {
    own->set_timeout(20s);
    waiting = come(*own, {.rank = 2, .pid = 32});
  });
  while (!has_key(store, entry_key(killed, "all"))) std::this_thread::sleep_for(1ms);
  REQUIRE(store.set(entry_key(job, "run"), "2").ok());
  std::vector<Comer> others = attempt(3);
  others.pop_back();
  std::vector<Outcome> outcomes = gather(store, others);
  rank_2.join();
  outcomes.push_back(waiting);
  require_together(outcomes);
}

TEST_CASE("a second process of a rank is told who came before") {
  HashStore store;
  require_together(gather(store, attempt(1)));
  for (const int rank : {2, 3, 0}) {
    const Outcome late = come(store, {.rank = rank, .pid = 99, .patience = 300ms});
    CAPTURE(late.status.to_string());
    const std::string text = late.status.to_string();
    if (rank == 0) {
      REQUIRE(late.status.code() == StatusCode::timeout);
      REQUIRE(has(text, "another process was rank 0 of world \"job\" before: pid 10"));
    } else {
      REQUIRE(late.status.code() == StatusCode::already_exists);
      REQUIRE(has(text, rank == 2 ? "rank 2 of world \"job\" was pid 12 before"
                                  : "all ranks of world \"job\" came before"));
      REQUIRE(has(text, "rank 0 has not come again; pid 99 waits no longer"));
    }
  }
}

TEST_CASE("the first of two processes of rank 0 is told at once") {
  HashStore store;
  const auto outcomes = gather(
      store, {{.rank = 0, .pid = 10},
              {.rank = 0, .pid = 99, .after = {has_come(0, "pid 10"), has_come(2, "pid 12")}},
              {.rank = 1, .pid = 11, .after = {has_come(0, "pid 99")}},
              {.rank = 2, .pid = 12}});
  REQUIRE(outcomes[0].status.code() == StatusCode::already_exists);
  REQUIRE(has(outcomes[0].status.what(), "another process is rank 0 of world \"job\": pid 99"));
  REQUIRE(outcomes[0].took < 5s);
  for (std::size_t i = 1; i < outcomes.size(); ++i) REQUIRE(outcomes[i].status.ok());
}

TEST_CASE("a rank that joins a failed run gets its error, though later") {
  HashStore store;
  const Moment is_wrong = [](Store& each) {
    return has_key(each, entry_key(newest(each), "verdict"));
  };
  const auto outcomes = gather(
      store,
      {{.rank = 0, .pid = 10},
       {.rank = 1, .pid = 11, .size = 4, .patience = 1s, .after = {has_come(0, "pid 10")}},
       {.rank = 2, .pid = 12, .patience = 300ms, .after = {has_come(0, "pid 10"), is_wrong}}});
  for (const Outcome& each : outcomes) {
    CAPTURE(each.status.to_string());
    REQUIRE(each.status.code() == StatusCode::mismatch);
  }
}

TEST_CASE("without rank 0 the others wait for it, and say so") {
  HashStore store;
  const Outcome alone = come(store, {.rank = 1, .pid = 11, .patience = 100ms});
  REQUIRE(alone.status.code() == StatusCode::timeout);
  REQUIRE(has(alone.status.what(), "rank 0 of world \"job\" is missing; rank 1 (pid 11) waits no"));
  REQUIRE(alone.took < 5s);
}
