// Many at once: threads of this process, and processes of which some are killed.
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "conformance/process.hpp"
#include "conformance/store_conformance.hpp"

namespace hocket::testing {

using namespace std::chrono_literals;
using store::Store;
using Strings = std::vector<std::string>;

namespace {

constexpr int rounds = 4;
constexpr int adds = 25;
constexpr int elements = 12;
constexpr int swaps = 3;
constexpr Duration patience = 120s;

// --- what each of many does: what went wrong, or nothing -------------------------------------

std::string add_many(Store& store) {
  for (int i = 0; i < adds; ++i) {
    if (const auto sum = store.add("sum", 1); !sum.ok()) return sum.status().to_string();
  }
  return {};
}

/// Pushes its own elements and pops as many of anybody's; those become keys.
std::string queue_many(Store& store, int who) {
  for (int i = 0; i < elements; ++i) {
    const Status status = store.queue_push("q", fmt::format("element {}.{}", who, i));
    if (!status.ok()) return status.to_string();
  }
  for (int i = 0; i < elements; ++i) {
    const auto popped = store.queue_pop("q", patience);
    if (!popped.ok()) return popped.status().to_string();
    const auto times = store.add(*popped, 1);
    if (!times.ok()) return times.status().to_string();
    if (*times != 1) return fmt::format("{} was popped {} times", *popped, *times);
  }
  return {};
}

std::string swap_many(Store& store) {
  std::string seen;
  for (int done = 0; done < swaps;) {
    const std::string next = std::to_string(seen.empty() ? 1 : std::stoi(seen) + 1);
    const auto swap = store.compare_set("swapped", seen, next);
    if (!swap.ok()) return swap.status().to_string();
    seen = swap->value.value_or("");
    if (swap->is_set) ++done;
  }
  return {};
}

/// Nobody leaves a round that somebody has not come to.
std::string meet_often(Store& store, int size) {
  for (int round = 0; round < rounds; ++round) {
    const std::string key = fmt::format("round {}", round);
    if (const auto came = store.add(key, 1); !came.ok()) return came.status().to_string();
    if (const Status status = store.barrier("b", size, patience); !status.ok()) {
      return status.to_string();
    }
    const auto came = store.get(key);
    if (!came.ok()) return came.status().to_string();
    if (*came != std::to_string(size)) return fmt::format("{}: {} of {}", key, *came, size);
  }
  return {};
}

std::string hammer(Store& store, int who, int size) {
  std::string failure = add_many(store);
  if (failure.empty()) failure = queue_many(store, who);
  if (failure.empty()) failure = swap_many(store);
  if (failure.empty()) failure = meet_often(store, size);
  return failure;
}

void require_what_many_did(Store& store, int size) {
  REQUIRE(require(store.get("sum")) == std::to_string(size * adds));
  REQUIRE(require(store.get("swapped")) == std::to_string(size * swaps));
  REQUIRE(require(store.keys("element ")).size() == static_cast<std::size_t>(size * elements));
  REQUIRE(require(store.queue_len("q")) == 0);
}

// --- other processes -------------------------------------------------------------------------

/// A process that runs the test case below.
Process start_worker(const Subject& subject, const std::string& task, int who, int size) {
  return Process::of_this_program({"a worker of another test", "--reporter", "compact"},
                                  fmt::format("{}\n{}\n{} {}\n", subject.address, task, who, size));
}

/// One that waits, long enough to have been noticed by the store.
Process start_waiting(const Subject& subject, const std::string& task) {
  Process worker = start_worker(subject, task, 0, 2);
  require(subject.store->wait({"about to wait"}, patience));
  let_others_wait();
  REQUIRE(require(subject.store->delete_key("about to wait")));
  return worker;
}

std::string work(Store& store, const std::string& task, int who, int size) {
  if (task == "hammer") return hammer(store, who, size);
  require(store.set("about to wait", ""));
  if (task == "get") return store.get("k", patience).status().to_string();
  if (task == "pop") return store.queue_pop("q", patience).status().to_string();
  return store.barrier("b", size, patience).to_string();
}

}  // namespace

TEST_CASE("a worker of another test", "[.]") {
  std::string address;
  std::string task;
  int who = 0;
  int size = 0;
  std::getline(std::cin, address);
  std::getline(std::cin, task);
  std::cin >> who >> size;
  REQUIRE(work(*reach(address), task, who, size) == "");
}

STORE_TEST("64 threads, half of them on one handle") {
  constexpr int threads = 64;
  std::vector<std::unique_ptr<Store>> clones;
  for (int i = 0; i < threads / 2; ++i) clones.push_back(clone(*subject.store));
  const Strings failures = in_threads(threads, [&](int i) {
    Store& store = i % 2 == 0 ? *subject.store : *clones[static_cast<std::size_t>(i / 2)];
    return hammer(store, i, threads);
  });
  REQUIRE(failures == Strings{});
  require_what_many_did(*subject.store, threads);
}

STORE_TEST("several keys set at once are seen at once") {
  const auto reader = clone(*subject.store);
  const auto write = [&](Store& store) -> std::string {
    for (int i = 0; i < 200; ++i) {
      const std::string value = std::to_string(i);
      const Status status = store.multi_set({"a", "b", "c"}, {value, value, value});
      if (!status.ok()) return status.to_string();
    }
    return store.set("done", "").to_string();
  };
  const auto read = [&](Store& store) -> std::string {
    while (!store.get("done", 0ns).ok()) {
      const auto seen = store.multi_get({"a", "b", "c"}, patience);
      if (!seen.ok()) return seen.status().to_string();
      if ((*seen)[0] != (*seen)[1] || (*seen)[1] != (*seen)[2]) return "some without the others";
    }
    return {};
  };
  const auto ended_well = [](const std::string& text) { return text.empty() || text == "ok"; };
  const Strings outcomes =
      in_threads(2, [&](int i) { return i == 0 ? write(*subject.store) : read(*reader); });
  for (const std::string& outcome : outcomes) REQUIRE((ended_well(outcome) ? "" : outcome) == "");
}

STORE_TEST("values grow while others read them") {
  const Strings failures = in_threads(4, [&](int i) -> std::string {
    for (int round = 0; round < 200; ++round) {
      const Status status = subject.store->append("k", std::string(1, static_cast<char>('a' + i)));
      if (!status.ok()) return status.to_string();
      const auto text = subject.store->get("k");
      if (!text.ok()) return text.status().to_string();
      if (text->size() <= static_cast<std::size_t>(round)) return "what was appended is gone";
    }
    return {};
  });
  REQUIRE(failures == Strings{});
  const std::string text = require(subject.store->get("k"));
  for (const char letter : {'a', 'b', 'c', 'd'}) REQUIRE(std::ranges::count(text, letter) == 200);
}

STORE_TEST("16 processes") {
  if (subject.address.empty()) return;
  constexpr int processes = 16;
  std::vector<Process> workers;
  for (int i = 0; i < processes; ++i) {
    workers.push_back(start_worker(subject, "hammer", i, processes));
  }
  for (Process& worker : workers) REQUIRE(worker.wait(2 * patience) == 0);
  require_what_many_did(*subject.store, processes);
}

STORE_TEST("who dies in a call that waits is gone") {
  if (subject.address.empty()) return;
  Store& store = *subject.store;
  Process getter = start_waiting(subject, "get");
  Process popper = start_waiting(subject, "pop");
  Process caller = start_waiting(subject, "barrier");
  for (Process* worker : {&getter, &popper, &caller}) {
    worker->send(SIGKILL);
    REQUIRE(worker->wait(soon) == -SIGKILL);
  }
  const Stopwatch watch;
  while (store.barrier("b", 3, 0ns).what().find("1 of 3") == std::string_view::npos) {
    REQUIRE(watch.elapsed() < soon);
  }
  require(store.queue_push("q", "e"));
  REQUIRE(require(store.queue_pop("q", soon)) == "e");
  REQUIRE(store.barrier("b", 2, 20ms).code() == StatusCode::timeout);
  require(store.set("k", "v"));
  REQUIRE(require(store.get("k")) == "v");
}

STORE_TEST("who dies at any moment leaves the others' work whole") {
  if (subject.address.empty()) return;
  Store& store = *subject.store;
  for (int victim = 0; victim < 5; ++victim) {
    const std::int64_t idle = require(store.add("sum", 0));
    Process worker = start_worker(subject, "hammer", victim, 1000);
    const Stopwatch watch;
    while (require(store.add("sum", 0)) == idle) REQUIRE(watch.elapsed() < patience);
    std::this_thread::sleep_for(3ms * victim);
    worker.send(SIGKILL);
    REQUIRE(worker.wait(soon) == -SIGKILL);
    const std::int64_t before = require(store.add("sum", 0));
    REQUIRE(add_many(store) == "");
    REQUIRE(require(store.add("sum", 0)) == before + adds);
  }
}

}  // namespace hocket::testing
