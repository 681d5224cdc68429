#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "bridge/program_store.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/require.hpp"
#include "support/stopwatch.hpp"
#include "support/temporary_folder.hpp"

using namespace std::chrono_literals;
using hocket::Communicator;
using hocket::Status;
using hocket::StatusCode;
using hocket::StoreServer;
using hocket::Swap;
using hocket::testing::require;
using hocket::testing::TemporaryFolder;

namespace {

// A machine under load may take this long for what should happen at once.
constexpr hocket::Duration patience = 20s;

/// Overrides only the pure functions.
class MinimalStore final : public hocket::Store {
 public:
  void set(std::string_view key, std::string_view value, TimeLimit /*timeout*/) override {
    change([&] { map_[std::string(key)] = value; });
  }
  std::string get(std::string_view key, TimeLimit timeout) override {
    const std::string wanted(key);
    wait(std::span(&wanted, 1), timeout);
    const std::lock_guard lock(mutex_);
    return map_[wanted];
  }
  void wait(std::span<const std::string> keys, TimeLimit timeout) override {
    std::unique_lock lock(mutex_);
    const auto are_there = [&] { return has(keys); };
    if (!changed_.wait_for(lock, timeout.value_or(hocket::Store::timeout()), are_there)) {
      hocket::throw_error(Status(StatusCode::timeout, "not there: " + keys.front()));
    }
  }
  bool check(std::span<const std::string> keys, TimeLimit /*timeout*/) override {
    const std::lock_guard lock(mutex_);
    return has(keys);
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimeLimit /*timeout*/) override {
    std::int64_t sum = 0;
    change([&] {
      std::string& text = map_[std::string(key)];
      sum = (text.empty() ? 0 : std::stoll(text)) + amount;
      text = std::to_string(sum);
    });
    return sum;
  }
  Swap compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   TimeLimit /*timeout*/) override {
    Swap swap;
    change([&] {
      const auto found = map_.find(std::string(key));
      swap.is_set = found == map_.end() ? expected.empty() : found->second == expected;
      if (swap.is_set) map_[std::string(key)] = desired;
      if (const auto now = map_.find(std::string(key)); now != map_.end()) swap.value = now->second;
    });
    return swap;
  }
  bool delete_key(std::string_view key, TimeLimit /*timeout*/) override {
    bool was_there = false;
    change([&] { was_there = map_.erase(std::string(key)) > 0; });
    return was_there;
  }

 private:
  bool has(std::span<const std::string> keys) const {
    for (const std::string& each : keys) {
      if (!map_.contains(each)) return false;
    }
    return true;
  }
  void change(const std::function<void()>& work) {
    const std::lock_guard lock(mutex_);
    work();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> map_;
};

/// Joins a world of `size` ranks, each in a thread with its own store_of(rank), and calls
/// work(world) on each; the last `missing` ranks do not come. Returns the error texts.
std::vector<std::string> in_world(
    const std::function<std::shared_ptr<hocket::Store>(int)>& store_of, int size,
    const std::function<void(Communicator&)>& work, std::chrono::nanoseconds timeout = patience,
    int missing = 0) {
  std::vector<std::string> failures(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size - missing; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        auto world =
            hocket::join({.store = store_of(rank), .rank = rank, .size = size, .timeout = timeout});
        work(world);
      } catch (const std::exception& error) {
        failures[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  std::erase(failures, "");
  return failures;
}

void require_sum(Communicator& world) {
  std::vector<int> values(1000, world.rank());
  world.all_reduce(std::span(values));
  const int sum = world.size() * (world.size() - 1) / 2;
  if (values[999] != sum) throw std::runtime_error("a wrong sum");
}

void require_throw(StatusCode code, const std::function<void()>& work) {
  try {
    work();
  } catch (const hocket::Error& error) {
    INFO(error.what());
    REQUIRE(error.code() == code);
    return;
  }
  FAIL("nothing was thrown");
}

}  // namespace

TEST_CASE("a program uses a store of this process") {
  const auto store = hocket::make_local_store();
  store->set("a", "1");
  REQUIRE(store->get("a") == "1");
  REQUIRE(store->add("n", 3) == 3);
  REQUIRE(store->compare_set("a", "1", "2").is_set);
  store->append("a", "3");
  const std::vector<std::string> keys = {"a", "n"};
  REQUIRE(store->multi_get(keys) == std::vector<std::string>{"23", "3"});
  REQUIRE(store->check(keys));
  REQUIRE(store->num_keys() == 2);
  REQUIRE(store->keys("n") == std::vector<std::string>{"n"});
  store->queue_push("q", "x");
  REQUIRE(store->queue_length("q") == 1);
  REQUIRE(store->queue_pop("q") == "x");
  REQUIRE(store->delete_key("a"));
  require_throw(StatusCode::timeout, [&] { static_cast<void>(store->get("a", 10ms)); });
  store->set_timeout(10ms);
  require_throw(StatusCode::timeout, [&] { static_cast<void>(store->get("a")); });
  store->barrier("b", 1);
  const auto part = hocket::make_prefix_store(hocket::make_prefix_store(store, "x"), "y");
  part->set("k", "v");
  REQUIRE(store->get("x/y/k") == "v");
}

TEST_CASE("a program serves a store, and others find it at the port that was free") {
  const hocket::Setting secret = {"HOCKET_SECRET", "hush"};
  const StoreServer server({.settings = {secret}});
  REQUIRE(server.port() != 0);
  const std::string url = fmt::format("tcp://127.0.0.1:{}", server.port());
  const auto store = hocket::open_store({.url = url, .timeout = patience, .settings = {secret}});
  store->set("a", "1");
  REQUIRE(store->timeout() == patience);
  const auto other = hocket::open_store({.url = url + "?timeout=7s", .settings = {secret}});
  REQUIRE(other->get("a") == "1");
  REQUIRE(other->timeout() == 7s);
  require_throw(StatusCode::permission_denied, [&] {
    static_cast<void>(hocket::open_store({.url = url, .settings = {{"HOCKET_SECRET", "wrong"}}}));
  });
  require_throw(StatusCode::invalid_argument, [&] {
    static_cast<void>(hocket::open_store({.url = url + "?rank=0&size=2", .settings = {secret}}));
  });
}

TEST_CASE("a program opens a store in a file") {
  const TemporaryFolder folder;
  const std::string url = "file://" + folder.path() + "/store";
  hocket::open_store({.url = url})->set("a", "1");
  REQUIRE(hocket::open_store({.url = url})->get("a") == "1");
}

TEST_CASE("functions that a program's store does not override use the others") {
  MinimalStore store;
  store.append("a", "1");
  store.append("a", "2");
  REQUIRE(store.get("a", {}) == "12");
  const std::vector<std::string> keys = {"b", "c"};
  const std::vector<std::string> values = {"x", "y"};
  store.multi_set(keys, values);
  REQUIRE(store.multi_get(keys) == values);
  require_throw(StatusCode::invalid_argument, [&] { store.multi_set(keys, {}); });
  store.append("a", "3", 0ns);
  REQUIRE(store.get("a", {}) == "123");
  require_throw(StatusCode::timeout, [&] {
    const std::vector<std::string> some = {"b", "none"};
    static_cast<void>(store.multi_get(some, 0ns));
  });
  require_throw(StatusCode::unsupported, [&] { static_cast<void>(store.keys()); });
  require_throw(StatusCode::unsupported, [&] { static_cast<void>(store.queue_pop("q")); });
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&store] { store.barrier("all", 3, hocket::Duration(patience)); });
    }
    for (std::thread& each : threads) each.join();
  }
  require_throw(StatusCode::timeout, [&] { store.barrier("all", 3, 10ms); });
}

TEST_CASE("threads append to a program's store at once") {
  MinimalStore store;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&store] {
      for (int k = 0; k < 50; ++k) store.append("a", "x");
    });
  }
  for (std::thread& each : threads) each.join();
  REQUIRE(store.get("a", {}).size() == 200);
}

TEST_CASE("what a program's store throws is the failure of the call") {
  class Broken final : public hocket::Store {
   public:
    void set(std::string_view, std::string_view, TimeLimit) override {
      throw std::runtime_error("the disk is full");
    }
    std::string get(std::string_view, TimeLimit) override { throw std::bad_alloc(); }
    void wait(std::span<const std::string>, TimeLimit) override { throw 5; }
    bool check(std::span<const std::string>, TimeLimit) override { return true; }
    std::int64_t add(std::string_view, std::int64_t, TimeLimit) override { return 0; }
    Swap compare_set(std::string_view, std::string_view, std::string_view, TimeLimit) override {
      return {};
    }
    bool delete_key(std::string_view, TimeLimit) override { return false; }
    std::vector<std::string> multi_get(std::span<const std::string>, TimeLimit) override {
      return {"one"};
    }
    std::vector<std::string> keys(std::string_view, TimeLimit) override { return {"p"}; }
    std::string describe() const override { return "the broken store"; }
  };
  const auto store = require(hocket::bridge::handle_of(std::make_shared<Broken>()));
  const Status full = store->set("k", "v");
  REQUIRE(full.what().find("the broken store: set \"k\"") != std::string_view::npos);
  REQUIRE(full.what().find("the disk is full") != std::string_view::npos);
  REQUIRE(store->get("k").status().code() == StatusCode::limit_exceeded);
  REQUIRE(store->wait({"k"}).code() == StatusCode::internal);
  REQUIRE(store->multi_get({"a", "b"}).status().code() == StatusCode::protocol_error);
  REQUIRE(store->leave_will({"k"}, {"v"}).code() == StatusCode::unsupported);
  REQUIRE(store->compare_set("k", "", "v").status().code() == StatusCode::protocol_error);
  REQUIRE(store->multi_get({}).status().code() == StatusCode::protocol_error);
  const auto part = hocket::make_prefix_store(std::make_shared<Broken>(), "part");
  require_throw(StatusCode::protocol_error, [&] { static_cast<void>(part->keys()); });
}

TEST_CASE("ranks join over a program's store, any number of times") {
  const auto store = std::make_shared<MinimalStore>();
  for (int i = 0; i < 3; ++i) {
    const auto failures = in_world([&](int) { return store; }, 3, require_sum);
    REQUIRE(failures == std::vector<std::string>{});
  }
}

TEST_CASE("ranks join with a new handle of the same store each time") {
  const StoreServer server;
  const std::string url = fmt::format("tcp://127.0.0.1:{}", server.port());
  for (int i = 0; i < 3; ++i) {
    const auto failures = in_world(
        [&](int) { return hocket::make_prefix_store(hocket::open_store({.url = url}), "a"); }, 2,
        require_sum);
    REQUIRE(failures == std::vector<std::string>{});
  }
}

TEST_CASE("ranks join over two parts of one store in turn") {
  const auto whole = hocket::make_local_store();
  for (int i = 0; i < 4; ++i) {
    const auto part = hocket::make_prefix_store(whole, i % 2 == 0 ? "even" : "odd");
    REQUIRE(in_world([&](int) { return part; }, 2, require_sum) == std::vector<std::string>{});
  }
}

TEST_CASE("ranks that do not come to a program's store are named") {
  const auto store = std::make_shared<MinimalStore>();
  const auto failures = in_world([&](int) { return store; }, 3, require_sum, 500ms, 1);
  REQUIRE(failures.size() == 2);
  for (const std::string& each : failures) {
    INFO(each);
    REQUIRE(each.find("1 of 3 ranks is missing: 2") != std::string::npos);
  }
}

TEST_CASE("a join that contradicts itself is refused") {
  const auto store = hocket::make_local_store();
  for (const hocket::JoinOptions& each :
       {hocket::JoinOptions{.store = store, .url = "env://"},
        hocket::JoinOptions{.store = store, .rank = 0},
        hocket::JoinOptions{.store = store, .size = 2},
        hocket::JoinOptions{.store = store, .rank = 2, .size = 2}}) {
    require_throw(StatusCode::invalid_argument, [&] { static_cast<void>(hocket::join(each)); });
  }
  require_throw(StatusCode::invalid_argument, [] {
    static_cast<void>(hocket::join({.rank = 0, .size = 1}));  // where?
  });
}

TEST_CASE("a join waits no longer for a store than its timeout") {
  auto server = std::make_unique<StoreServer>();
  const auto store = hocket::open_store({.url = fmt::format("tcp://127.0.0.1:{}", server->port())});
  server = nullptr;
  const hocket::testing::Stopwatch watch;
  try {
    static_cast<void>(hocket::join({.store = store, .rank = 0, .size = 1, .timeout = 300ms}));
    FAIL("nothing was thrown");
  } catch (const hocket::Error& error) {
    INFO(error.what());
    REQUIRE(watch.elapsed() < patience);
  }
}

TEST_CASE("a child does not use the stores of its parent") {
  const auto store = hocket::make_local_store();
  hocket::testing::Child child([&] {
    try {
      store->set("a", "1");
    } catch (const hocket::InvalidArgument& error) {
      return std::string_view(error.what()).find("does not survive a fork") !=
             std::string_view::npos;
    }
    return false;
  });
  REQUIRE(child.ended_well());
}
