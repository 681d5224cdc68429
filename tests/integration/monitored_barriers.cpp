// Barriers that name who is missing, and fail alone. All ranks of a world run it; it prints what is
// wrong, and fails then.
#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"
#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Communicator;
using hocket::Status;
using hocket::StatusCode;
using hocket::testing::failure_of;
using hocket::testing::Report;
using hocket::testing::says;
using hocket::testing::Stopwatch;

constexpr auto short_time = 300ms;
constexpr auto long_time = 100s;
constexpr auto soon = 20s;  // far less, also where other tests take the processors

void all_come(Communicator& group, Report& report) {
  for (int i = 0; i < 20; ++i) {
    if (group.rank() == i % group.size()) std::this_thread::sleep_for(2ms);
    report.add(failure_of([&] { group.monitored_barrier(long_time); }).ok() ? "" : "all came");
  }
}

/// All ranks but 0 come late: they wait for an ordinary barrier, which rank 0 reaches only after
/// its timeout.
void many_are_late(Communicator& group, Report& report) {
  if (group.rank() != 0) group.barrier({.timeout = long_time});
  const Status status = failure_of([&] { group.monitored_barrier(short_time); });
  if (group.rank() == 0) group.barrier({.timeout = long_time});
  const std::string what = fmt::format("late, rank {}: {}", group.rank(), status.to_string());
  report.expect(status.code() == StatusCode::timeout && status.peer() == 1, what);
  report.expect(says(status, fmt::format("{} of {} ranks", group.size() - 1, group.size())), what);
  for (int rank = 1; rank < group.size(); ++rank) {
    report.expect(says(status, fmt::format("rank {} (pid ", rank)), what);
  }
  report.expect(!says(status, "rank 0 (pid "), what);
  float sum = 1;
  group.all_reduce(std::span(&sum, 1), {}, {.timeout = long_time});
  report.expect(sum == static_cast<float>(group.size()), "the communicator goes on");
  all_come(group, report);
}

/// One that waits hears that there is nothing to wait for any more.
void one_aborts(const Communicator& world, Report& report) {
  Communicator group = Communicator(world).dup();
  if (group.rank() == 1) {
    std::this_thread::sleep_for(short_time);
    return group.abort("enough");
  }
  const Stopwatch watch;
  const Status status = failure_of([&] { group.monitored_barrier(long_time); });
  report.expect(
      status.code() == StatusCode::aborted && status.peer() == 1 && says(status, "enough"),
      "aborted: " + status.to_string());
  report.expect(watch.elapsed() < soon, "aborted, and long ago");
  report.expect(failure_of([&] { group.monitored_barrier(long_time); }).code() == status.code(),
                "what has failed, has failed");
}

void refused(Communicator& group, Report& report) {
  const Status status = failure_of([&] { group.monitored_barrier(-1ns); });
  report.expect(status.code() == StatusCode::invalid_argument, "below zero");
}

}  // namespace

int main() {
  Report report;
  Communicator world = hocket::join();
  all_come(world, report);
  many_are_late(world, report);
  refused(world, report);
  // Parts that don't know of each other.
  Communicator part = world.split(world.rank() % 2);
  if (part.size() > 1) many_are_late(part, report);
  part = {};
  one_aborts(world, report);
  world.barrier({.timeout = long_time});
  return report.status();
}
