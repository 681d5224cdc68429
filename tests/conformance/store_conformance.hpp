// What every store must do, written once. To plug a store in: a struct here, its make() in
// store_kinds.cpp, its name in STORE_KINDS and in meson.build.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "store/store.hpp"
#include "support/require.hpp"

namespace hocket::testing {

/// A store that holds no key yet, and what keeps it alive.
struct Subject {
  std::shared_ptr<void> resources = {};
  std::unique_ptr<store::Store> store = {};  // null where it can't be had, for a reason printed
  std::string address = {};    // for reach(); empty when only this process has the store
  bool serves_in_turn = true;  // who has waited longest for a queue's next element gets it
};

struct Hash {
  static Subject make();
};
struct Prefix {
  static Subject make();
};
struct PrefixInPrefix {
  static Subject make();
};
struct File {
  static Subject make();
};
struct Tcp {
  static Subject make();
};
struct Tls {
  static Subject make();
};
/// A program's own, which hands all on to one of ours.
struct Program {
  static Subject make();
};

#define STORE_KINDS Hash, Prefix, PrefixInPrefix, File, Tcp, Tls, Program

/// The store at a Subject's address, from any process.
std::unique_ptr<store::Store> reach(const std::string& address);

std::unique_ptr<store::Store> clone(store::Store& store);

/// Requires this failure, told by whom it happened to and doing what.
void require_failure(const store::Store& store, const Status& status, StatusCode code,
                     const std::vector<std::string>& words);

/// Runs `work(i)` in `count` threads at once; the texts that are not empty are what went wrong.
std::vector<std::string> in_threads(int count, const std::function<std::string(int)>& work);

/// What a thread does while the test goes on; joined by finish() at the latest.
template <class T>
class Background {
 public:
  template <class Work>
  explicit Background(Work work) : thread_([this, work] { outcome_ = work(); }) {}
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background() { join(); }

  [[nodiscard]] T finish() {
    join();
    return std::move(*outcome_);
  }

 private:
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  std::optional<T> outcome_;
  std::thread thread_;
};

/// Long enough for a thread to have begun to wait, almost always; no test depends on it.
inline void let_others_wait() { std::this_thread::sleep_for(std::chrono::milliseconds(30)); }

}  // namespace hocket::testing

#define STORE_TEST_AS(function, name)         \
  static void function(Subject& subject);     \
  TEMPLATE_TEST_CASE(name, "", STORE_KINDS) { \
    Subject subject = TestType::make();       \
    if (subject.store) function(subject);     \
  }                                           \
  static void function(Subject& subject)
#define STORE_TEST_NUMBERED(number, name) STORE_TEST_AS(store_test_##number, name)
#define STORE_TEST_EXPANDED(number, name) STORE_TEST_NUMBERED(number, name)

/// STORE_TEST("name") { … subject … }: one test case for each kind of store, the body compiled
/// once. Inside of hocket::testing.
#define STORE_TEST(name) STORE_TEST_EXPANDED(__COUNTER__, name)
