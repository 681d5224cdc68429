// Communicators that are aborted while ranks wait, work, or do nothing. All ranks of a world run
// it; it prints what is wrong, and fails then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"
#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Duration;
using hocket::Message;
using hocket::Status;
using hocket::StatusCode;
using hocket::Work;
using hocket::testing::failure_of;
using hocket::testing::Report;
using hocket::testing::Stopwatch;

constexpr std::string_view reason = "the user has had enough";
constexpr auto timeout = 100s;
constexpr auto soon = 20s;  // far less, also where other tests take the processors

/// With the reason that the rank gave which aborts.
void expect_reason(const Status& status, const std::string& what, Report& report) {
  report.expect(
      status.code() == StatusCode::aborted && status.to_string().find(reason) != std::string::npos,
      what + ": " + status.to_string());
}

/// Of another rank, that had to do with rank 1: which it names.
void expect_aborted(const Communicator& group, const Status& status, const std::string& what,
                    Report& report) {
  if (group.rank() == 1) return expect_reason(status, what, report);
  report.expect(status.peer() == 1, what + ": " + status.to_string());
  expect_reason(status, what, report);
}

/// What rank 1 had sent before it was aborted may be enough for others to end an operation well.
Status failure_of_next(Communicator& group, std::vector<float>& values) {
  Status failure;
  for (int i = 0; i < 3 && failure.ok(); ++i) {
    failure = failure_of([&] { group.all_reduce(values, {}, {.timeout = timeout}); });
  }
  return failure;
}

struct Wait {
  std::string_view name;
  /// Waits for what does not come, as no other rank is there.
  void (*run)(Communicator& group, std::vector<float>& values);
};

constexpr Wait waits[] = {
    {"run", [](Communicator& group,
               std::vector<float>& values) { group.all_reduce(values, {}, {.timeout = timeout}); }},
    {"start",
     [](Communicator& group, std::vector<float>& values) {
       group.start(Collective::all_reduce(values, values, {}, {.timeout = timeout})).wait();
     }},
    {"wait_any",
     [](Communicator& group, std::vector<float>& values) {
       Work work = group.start(Collective::all_reduce(values, values, {}, {.timeout = timeout}));
       static_cast<void>(hocket::wait_any(std::span(&work, 1)));
       work.wait();
     }},
    {"background",
     [](Communicator& group, std::vector<float>& values) {
       const Work work =
           group.start(Collective::all_reduce(values, values, {}, {.timeout = timeout}));
       const Stopwatch watch;
       while (work.status().code() == StatusCode::in_progress && watch.elapsed() < soon) {
         std::this_thread::sleep_for(1ms);
       }
       if (Status status = work.status(); !status.ok()) hocket::throw_error(status);
     }},
    {"recv", [](Communicator& group,
                std::vector<float>& values) { group.recv(values, 0, 7, {.timeout = timeout}); }},
};

/// One thread aborts what another waits for, and then other ranks come.
void check_wait(Communicator& world, const Wait& wait, std::size_t count,
                std::vector<Duration>& delays, Report& report) {
  const std::string what = fmt::format("{} of {}", wait.name, count);
  Communicator group = world.dup();
  std::vector<float> values(count, 1.0F);
  if (group.rank() == 1) {
    Stopwatch since_abort;
    std::thread other([&] {
      std::this_thread::sleep_for(50ms);
      since_abort = {};
      group.abort(reason);
      group.abort("another reason");
    });
    const Status failure = failure_of([&] { wait.run(group, values); });
    const Duration freed = since_abort.elapsed();
    other.join();
    expect_reason(failure, what, report);
    report.expect(freed < soon, what + ": not free soon");
    delays.push_back(freed);
    std::printf("%s: free after %.3f ms\n", what.c_str(),
                std::chrono::duration<double, std::milli>(freed).count());
  }
  world.barrier();
  const Stopwatch watch;
  expect_aborted(group, failure_of_next(group, values), what + ", later", report);
  report.expect(watch.elapsed() < soon, what + ": others wait");
  world.barrier();
}

/// The thread that aborts is the one that the custom op waits for: it must not wait for the op.
void check_blocked(Communicator& world, Report& report) {
  Communicator group = world.dup();
  struct Block {
    std::atomic<bool> is_reached = false;
    std::atomic<bool> is_over = false;
  } block;
  hocket::Reduction reduction(hocket::ReduceOp::custom);
  reduction.context = &block;
  reduction.custom = [](void* context, void*, const void*, const void*, std::size_t,
                        hocket::DataType) {
    auto& self = *static_cast<Block*>(context);
    self.is_reached = true;
    const Stopwatch watch;
    while (!self.is_over && watch.elapsed() < soon) std::this_thread::yield();
  };
  std::vector<float> values(16, 1.0F);
  std::thread other([&] {
    const Stopwatch watch;
    while (!block.is_reached && watch.elapsed() < 2s) std::this_thread::sleep_for(1ms);
    const Stopwatch aborting;
    if (block.is_reached) group.abort(reason);
    report.expect(aborting.elapsed() < 1s, "abort waits for a custom op");
    block.is_over = true;
  });
  const Status failure =
      failure_of([&] { group.all_reduce(values, reduction, {.timeout = timeout}); });
  other.join();
  const bool has_aborted = block.is_reached;
  if (has_aborted) {
    // The op may have been over before the abort took effect.
    const Status next = failure.ok() ? failure_of_next(group, values) : failure;
    report.expect(next.code() == StatusCode::aborted, "in a custom op: " + next.to_string());
  }
  std::int32_t aborts = has_aborted ? 1 : 0;
  world.all_reduce(std::span(&aborts, 1));
  report.expect(aborts > 0, "no custom op was called");
}

/// Nobody waits, and nothing was ever sent.
void check_idle(Communicator& world, Report& report) {
  for (const bool was_used : {false, true}) {
    Communicator group = world.dup();
    if (was_used) group.barrier();
    if (group.rank() == 1) group.abort(reason);
    world.barrier();
    std::vector<float> values(16);
    expect_aborted(group, failure_of_next(group, values), was_used ? "idle" : "unused", report);
    world.barrier();
  }
}

/// It may go at once, before anybody has heard of the abort: this must not crash or hang.
void check_gone(Communicator& world) {
  for (int i = 0; i < 200; ++i) {
    Communicator group = world.dup();
    group.abort(reason);
  }
  world.barrier();
}

}  // namespace

int main() {
  Report report;
  Communicator world = hocket::join();
  std::vector<Duration> delays;
  for (const Wait& wait : waits) {
    for (const std::size_t count : {std::size_t{16}, std::size_t{300'000}}) {
      check_wait(world, wait, count, delays, report);
    }
  }
  std::ranges::sort(delays);
  // Most of them: where other tests take the processors, some may have to wait for one.
  if (world.rank() == 1) report.expect(delays[delays.size() / 2] < 10ms, "not free within 10 ms");
  check_blocked(world, report);
  check_idle(world, report);
  check_gone(world);
  world.barrier();
  return report.status();
}
