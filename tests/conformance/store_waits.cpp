// Calls that wait: what wakes them, how they give up, and that nobody else notices.
#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/store_conformance.hpp"

namespace hocket::testing {

using namespace std::chrono_literals;
using store::Store;
using Strings = std::vector<std::string>;

namespace {

/// Requires that the call gave up when its time was over: not before, and not much later.
template <class Call>
Status gives_up_after(Duration timeout, const Call& call) {
  const Stopwatch watch;
  Status status = call();
  REQUIRE(watch.elapsed() >= timeout);
  REQUIRE(watch.elapsed() < timeout + soon);
  return status;
}

/// Returns when this many wait at a barrier of this size. To ask, it comes to the barrier as one
/// more and leaves at once.
void await_callers(Store& store, const std::string& barrier, int size, int callers) {
  const std::string sign = std::to_string(callers + 1) + " of " + std::to_string(size);
  const Stopwatch watch;
  while (store.barrier(barrier, size, 0ns).what().find(sign) == std::string_view::npos) {
    REQUIRE(watch.elapsed() < soon);
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

STORE_TEST("whatever makes a key wakes those who wait for it") {
  Store& store = *subject.store;
  const std::pair<std::string, Status (*)(Store&)> makers[] = {
      {"set", [](Store& by) { return by.set("set", "1"); }},
      {"add", [](Store& by) { return by.add("add", 1).status(); }},
      {"append", [](Store& by) { return by.append("append", "1"); }},
      {"compare_set", [](Store& by) { return by.compare_set("compare_set", "", "1").status(); }},
      {"multi_set",
       [](Store& by) {
         return by.multi_set({"x", "multi_set"}, {"", "1"});
       }},
  };
  for (const auto& maker : makers) {
    const std::string& key = maker.first;
    CAPTURE(key);
    const Stopwatch watch;
    Background<Result<std::string>> getter([&] { return store.get(key, soon); });
    Background<Status> waiter([&] { return store.wait({key}, soon); });
    let_others_wait();
    require(maker.second(store));
    REQUIRE(require(getter.finish()) == "1");
    require(waiter.finish());
    REQUIRE(watch.elapsed() < soon);
  }
}

STORE_TEST("who waits for several keys waits for the last of them") {
  Store& store = *subject.store;
  std::atomic<bool> is_done = false;
  Background<Result<Strings>> getter([&] {
    auto values = store.multi_get({"c", "a", "b"}, soon);
    is_done = true;
    return values;
  });
  for (const char* key : {"b", "c"}) {
    require(store.set(key, key));
    let_others_wait();
    REQUIRE_FALSE(is_done);
  }
  require(store.set("a", "a"));
  REQUIRE(require(getter.finish()) == Strings{"c", "a", "b"});
}

STORE_TEST("a key that came and went is waited for again") {
  Store& store = *subject.store;
  Background<Status> waiter([&] { return store.wait({"a", "b"}, 300ms); });
  let_others_wait();
  require(store.set("a", ""));
  REQUIRE(require(store.delete_key("a")));
  require(store.set("b", ""));
  require_failure(store, waiter.finish(), StatusCode::timeout, {"1 of 2", "a\""});
}

STORE_TEST("who waits in vain is told for what, in time") {
  Store& store = *subject.store;
  require(store.set("there", ""));
  require_failure(store, gives_up_after(50ms, [&] { return store.get("gone", 50ms).status(); }),
                  StatusCode::timeout, {"get", "gone\"", "50ms"});
  require_failure(store, gives_up_after(50ms, [&] { return store.wait({"gone"}, 50ms); }),
                  StatusCode::timeout, {"wait", "gone\"", "50ms"});
  const Status status = gives_up_after(50ms, [&] {
    return store.wait({"far", "there", "gone"}, 50ms);
  });
  require_failure(store, status, StatusCode::timeout, {"2 of 3", "far\"", "gone\"", "50ms"});
  REQUIRE(status.what().find("there\"") == std::string_view::npos);
}

STORE_TEST("a wait that was given up leaves nothing behind") {
  Store& store = *subject.store;
  for (int i = 0; i < 3; ++i) {
    REQUIRE_FALSE(store.get("k", 1ms).ok());
    REQUIRE_FALSE(store.wait({"k", "l"}, 1ms).ok());
  }
  REQUIRE(require(store.num_keys()) == 0);
  require(store.set("k", "41"));
  REQUIRE(require(store.add("k", 1)) == 42);
  REQUIRE(require(store.get("k")) == "42");
  REQUIRE(require(store.add("l", 1)) == 1);
  REQUIRE(require(store.delete_key("k")));
}

STORE_TEST("zero or less means at once or not at all") {
  Store& store = *subject.store;
  require(store.set("k", "v"));
  require(store.queue_push("q", "e"));
  require(store.queue_push("q", "f"));
  for (const Duration timeout : {Duration(0), Duration(-1), Duration(-1h), Duration::min()}) {
    const Stopwatch watch;
    REQUIRE(require(store.get("k", timeout)) == "v");
    require(store.wait({"k"}, timeout));
    require(store.barrier("alone", 1, timeout));
    for (const Status& status :
         {store.get("gone", timeout).status(), store.wait({"k", "gone"}, timeout),
          store.queue_pop("none", timeout).status(), store.barrier("b", 2, timeout)}) {
      require_failure(store, status, StatusCode::timeout, {"at once"});
    }
    REQUIRE(watch.elapsed() < soon);
  }
  REQUIRE(require(store.queue_pop("q", Duration::min())) == "e");
  REQUIRE(require(store.queue_pop("q", 0ns)) == "f");
}

STORE_TEST("a timeout may be longer than any clock runs") {
  Store& store = *subject.store;
  for (const Duration timeout : {Duration(24h * 365 * 200), Duration::max()}) {
    Background<Result<std::string>> getter([&] { return store.get("k", timeout); });
    Background<Result<std::string>> popper([&] { return store.queue_pop("q", timeout); });
    Background<Status> early([&] { return store.barrier("b", 2, timeout); });
    let_others_wait();
    require(store.set("k", "v"));
    require(store.queue_push("q", "e"));
    require(store.barrier("b", 2, timeout));
    REQUIRE(require(getter.finish()) == "v");
    REQUIRE(require(popper.finish()) == "e");
    require(early.finish());
    REQUIRE(require(store.delete_key("k")));
  }
}

STORE_TEST("calls without a timeout take the store's") {
  Store& store = *subject.store;
  REQUIRE(store.timeout() == Store::default_timeout);
  store.set_timeout(40ms);
  REQUIRE(store.timeout() == 40ms);
  for (const Status& status : {gives_up_after(40ms, [&] { return store.get("k").status(); }),
                               gives_up_after(40ms, [&] { return store.wait({"k"}); }),
                               gives_up_after(40ms, [&] { return store.queue_pop("q").status(); }),
                               gives_up_after(40ms, [&] { return store.barrier("b", 2); })}) {
    require_failure(store, status, StatusCode::timeout, {"40ms"});
  }
}

STORE_TEST("who waits holds up no other on the same handle") {
  Store& store = *subject.store;
  Background<Result<std::string>> getter([&] { return store.get("k", soon); });
  Background<Result<std::string>> popper([&] { return store.queue_pop("q", soon); });
  Background<Status> early([&] { return store.barrier("b", 2, soon); });
  let_others_wait();
  const Stopwatch watch;
  for (int i = 0; i < 20; ++i) REQUIRE(require(store.add("other", 1)) == i + 1);
  require(store.set("k", "v"));
  require(store.queue_push("q", "e"));
  require(store.barrier("b", 2));
  REQUIRE(require(getter.finish()) == "v");
  REQUIRE(require(popper.finish()) == "e");
  require(early.finish());
  REQUIRE(watch.elapsed() < soon / 2);
}

STORE_TEST("what comes first into a queue goes first") {
  Store& store = *subject.store;
  REQUIRE(require(store.queue_len("q")) == 0);
  const Strings elements = {"a", "", "b", "b", std::string("\0", 1)};
  for (const std::string& element : elements) require(store.queue_push("q", element));
  REQUIRE(require(store.queue_len("q")) == 5);
  REQUIRE(require(store.queue_len("other")) == 0);
  for (const std::string& element : elements) REQUIRE(require(store.queue_pop("q")) == element);
  REQUIRE(require(store.queue_len("q")) == 0);
}

STORE_TEST("a queue and a value may have the same key") {
  Store& store = *subject.store;
  require(store.set("k", "value"));
  require(store.queue_push("k", "element"));
  REQUIRE(require(store.get("k")) == "value");
  REQUIRE(require(store.queue_len("k")) == 1);
  REQUIRE(require(store.delete_key("k")));
  REQUIRE(require(store.queue_pop("k")) == "element");
}

STORE_TEST("a popper that gave up swallows nothing") {
  Store& store = *subject.store;
  for (int i = 0; i < 3; ++i) {
    const Status status = gives_up_after(20ms, [&] { return store.queue_pop("q", 20ms).status(); });
    require_failure(store, status, StatusCode::timeout, {"queue_pop", "\"q\"", "20ms"});
  }
  require(store.queue_push("q", "a"));
  require(store.queue_push("q", "b"));
  REQUIRE(require(store.queue_len("q")) == 2);
  REQUIRE(require(store.queue_pop("q")) == "a");
}

STORE_TEST("poppers are served, and in the order in which they came") {
  Store& store = *subject.store;
  Strings popped;
  // Which thread comes first is the system's affair: it has three tries.
  for (int attempt = 1; attempt <= 3; ++attempt) {
    std::vector<std::unique_ptr<Background<Result<std::string>>>> poppers;
    for (int i = 0; i < 5; ++i) {
      poppers.push_back(std::make_unique<Background<Result<std::string>>>(
          [&] { return store.queue_pop("q", soon); }));
      for (int pause = 0; pause < attempt; ++pause) let_others_wait();
    }
    for (int i = 0; i < 5; ++i) require(store.queue_push("q", std::to_string(i)));
    popped.clear();
    for (auto& each : poppers) popped.push_back(require(each->finish()));
    if (std::ranges::is_sorted(popped)) break;
  }
  if (!subject.serves_in_turn) std::ranges::sort(popped);
  REQUIRE(popped == Strings{"0", "1", "2", "3", "4"});
  REQUIRE(require(store.queue_len("q")) == 0);
}

STORE_TEST("a barrier opens for the last to come, and can be used anew") {
  Store& store = *subject.store;
  for (int round = 0; round < 5; ++round) {
    std::atomic<int> through = 0;
    const auto pass = [&] {
      Status status = store.barrier("b", 3, soon);
      ++through;
      return status;
    };
    Background<Status> first(pass);
    Background<Status> second(pass);
    let_others_wait();
    REQUIRE(through == 0);
    require(store.barrier("b", 3, soon));
    require(first.finish());
    require(second.finish());
  }
}

STORE_TEST("barriers of other names have other callers") {
  Store& store = *subject.store;
  Background<Status> one([&] { return store.barrier("one", 2, soon); });
  Background<Status> two([&] { return store.barrier("two", 2, soon); });
  let_others_wait();
  require(store.barrier("two", 2, soon));
  require(store.barrier("one", 2, soon));
  require(one.finish());
  require(two.finish());
}

STORE_TEST("callers of a barrier who disagree are all told") {
  Store& store = *subject.store;
  Background<Status> first([&] { return store.barrier("b", 4, soon); });
  Background<Status> second([&] { return store.barrier("b", 4, soon); });
  await_callers(store, "b", 4, 2);
  const Status last = store.barrier("b", 3, soon);
  for (const Status& status : {first.finish(), second.finish(), last}) {
    require_failure(store, status, StatusCode::mismatch, {"barrier \"b\"", "3", "4"});
  }
  require(store.barrier("b", 1, soon));
  require_failure(store, store.barrier("b", 0), StatusCode::invalid_argument, {"barrier of 0"});
  require_failure(store, store.barrier("b", -1), StatusCode::invalid_argument, {"barrier of -1"});
}

STORE_TEST("who leaves a barrier is told how many came, and has not come") {
  Store& store = *subject.store;
  Background<Status> first([&] { return store.barrier("b", 4, soon); });
  await_callers(store, "b", 4, 1);
  require_failure(store, gives_up_after(50ms, [&] { return store.barrier("b", 4, 50ms); }),
                  StatusCode::timeout, {"2 of 4", "\"b\"", "50ms"});
  Background<Status> second([&] { return store.barrier("b", 4, soon); });
  await_callers(store, "b", 4, 2);
  Background<Status> third([&] { return store.barrier("b", 4, soon); });
  let_others_wait();
  require(store.barrier("b", 4, soon));
  require(first.finish());
  require(second.finish());
  require(third.finish());
}

STORE_TEST("calls that wait on one handle are served through another") {
  Store& store = *subject.store;
  const auto other = clone(store);
  Background<Result<std::string>> getter([&] { return store.get("k", soon); });
  Background<Result<std::string>> popper([&] { return store.queue_pop("q", soon); });
  Background<Status> early([&] { return store.barrier("b", 2, soon); });
  let_others_wait();
  require(other->set("k", "v"));
  require(other->queue_push("q", "e"));
  require(other->barrier("b", 2, soon));
  REQUIRE(require(getter.finish()) == "v");
  REQUIRE(require(popper.finish()) == "e");
  require(early.finish());
}

}  // namespace hocket::testing
