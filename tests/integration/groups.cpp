// Communicators that their members make alone. Arguments: "all", for all ranks of a world of four
// or more; "time", which fails if it takes too long, alone on a machine; "survivors", which starts
// its own ranks. Prints what is wrong, and fails then.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"
#include "support/stopwatch.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Communicator;
using hocket::Message;
using hocket::Status;
using hocket::StatusCode;
using hocket::testing::failure_of;
using hocket::testing::Report;
using hocket::testing::says;
using hocket::testing::Stopwatch;

constexpr auto short_time = 300ms;
constexpr auto long_time = 100s;
constexpr auto soon = 20s;  // far less, also where other tests take the processors

/// The ranks of the world that a communicator has, in its order.
std::vector<int> members_of(Communicator& group, const Communicator& world) {
  std::vector<int> members(static_cast<std::size_t>(group.size()));
  const int own[] = {world.rank()};
  group.all_gather(own, members, {.timeout = long_time});
  return members;
}

void expect_members(Communicator group, const Communicator& world, const std::vector<int>& wanted,
                    std::string_view what, Report& report) {
  if (!group) return report.add(fmt::format("{}: rank {} is in no group", what, world.rank()));
  report.expect(wanted[static_cast<std::size_t>(group.rank())] == world.rank(),
                fmt::format("{}: rank {} has another place", what, world.rank()));
  report.expect(members_of(group, world) == wanted,
                fmt::format("{}: rank {} is in another group", what, world.rank()));
}

/// Overlapping pairs, each made by two ranks while the others do something else.
void make_pairs(Communicator& world, Report& report) {
  std::vector<Communicator> pairs;
  for (int first = 0; first + 1 < world.size(); ++first) {
    if (world.rank() != first && world.rank() != first + 1) continue;
    const std::vector<int> ranks = {first + 1, first};
    pairs.push_back(world.group(ranks, "pair", long_time));
    expect_members(pairs.back(), world, ranks, "a pair", report);
  }
  for (Communicator& pair : pairs) {
    const int sent[] = {world.rank()};
    int received[] = {-1};
    pair.sendrecv(Message::send(sent, 1 - pair.rank()), Message::recv(received, 1 - pair.rank()));
    report.expect(std::abs(received[0] - world.rank()) == 1, "a message came from elsewhere");
  }
}

void make_others(Communicator& world, Report& report) {
  std::vector<int> reversed(static_cast<std::size_t>(world.size()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  Communicator back = world.group(reversed);
  expect_members(back, world, reversed, "all ranks, reversed", report);
  // Of the world, these are its last two, the last first.
  const int front[] = {0, 1};
  Communicator part = back.group(front, "part.of.a.part");
  back = {};
  report.expect(static_cast<bool>(part) == (world.rank() >= world.size() - 2), "who is in a part");
  if (part) {
    expect_members(part, world, {world.size() - 1, world.size() - 2}, "a part of a part", report);
  }
  const int own[] = {world.rank()};
  expect_members(world.group(own), world, {world.rank()}, "a rank alone", report);
  const Communicator none = world.group({});
  report.expect(!none, "a communicator of no ranks");
}

/// Each thread makes communicators of the same ranks; the order of the threads differs.
void make_in_threads(Communicator& world, Report& report) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, number = (i + world.rank()) % 4] {
      for (int round = 0; round < 5; ++round) {
        expect_members(world.group(all, fmt::format("thread.{}", number), long_time), world, all,
                       "in threads", report);
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

void disagree(Communicator& world, Report& report) {
  const std::vector<int> ranks = {0, 1};
  if (world.rank() > 1) return;
  const std::vector<int> own = world.rank() == 0 ? ranks : std::vector<int>{1, 0};
  const Status status = failure_of([&] { (void)world.group(own, "orders", long_time); });
  const std::string what = fmt::format("orders, rank {}: {}", world.rank(), status.to_string());
  report.expect(status.code() == StatusCode::mismatch && status.peer() == 1 - world.rank(), what);
  report.expect(says(status, "in different orders"), what);
  expect_members(world.group(ranks, "orders", long_time), world, ranks, "in one order", report);
}

/// Rank 1 comes when rank 0 has given up; then both call it again.
void come_late(Communicator& world, Report& report) {
  if (world.rank() > 1) return;
  const std::vector<int> ranks = {0, 1};
  const auto make = [&](auto timeout) { return world.group(ranks, "late", timeout); };
  int word[] = {0};
  if (world.rank() == 1) world.recv(word, 0);
  const Status status = failure_of([&] { (void)make(short_time); });
  if (world.rank() == 0) world.send(word, 1);
  const std::string what = fmt::format("late, rank {}: {}", world.rank(), status.to_string());
  report.expect(status.code() == StatusCode::timeout && status.peer() == 1, what);
  report.expect(says(status, "1 of 2 ranks") && says(status, "rank 1 (pid "), what);
  expect_members(make(long_time), world, ranks, "once more", report);
  const Status without_time = failure_of([&] { (void)make(0s); });
  if (!without_time.ok()) report.expect(without_time.code() == StatusCode::timeout, "without time");
}

void be_refused(Communicator& world, Report& report) {
  const std::vector<int> own = {world.rank()};
  const auto refused = [&](std::span<const int> ranks, std::string_view name,
                           std::optional<hocket::Duration> timeout, std::string_view words) {
    const Status status = failure_of([&] { (void)world.group(ranks, name, timeout); });
    report.expect(status.code() == StatusCode::invalid_argument && says(status, words),
                  fmt::format("{}: {}", words, status.to_string()));
  };
  refused(own, "a/b", {}, "can't be the name of a communicator");
  refused(own, "", -1ns, "below zero");
}

/// A communicator that has failed still knows its ranks.
void go_on_without_it(const Communicator& world, Report& report) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  Communicator failed = Communicator(world).group(all, "to.fail", long_time);
  if (failed.rank() == 1) failed.abort("enough");
  // The second needs channels that there are not, and says as much.
  std::vector<int> values(all.size());
  for (const Status& status :
       {failure_of([&] { failed.barrier({.timeout = long_time}); }),
        failure_of([&] { failed.scan(all, values); }), failure_of([&] { failed.send(all, 0); })}) {
    const std::string what = "it has failed: " + status.to_string();
    report.expect(status.code() == StatusCode::aborted && status.rank() == failed.rank(), what);
    report.expect(says(status, "failed on rank"), what);
  }
  expect_members(failed.group(all, "next", long_time), world, all, "after a failure", report);
}

struct Use {
  std::size_t descriptors = 0;
  std::size_t threads = 0;
};

Use use() {
  const auto entries = [](const char* folder) {
    const std::filesystem::directory_iterator files(folder);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  };
  return {.descriptors = entries("/proc/self/fd"), .threads = entries("/proc/self/task")};
}

/// So many that are used and go, of two ranks each, and half of them while older ones live.
void come_and_go(Communicator& world, Report& report) {
  constexpr int count = 1000;
  const int other = world.rank() % 2 == 0 ? world.rank() + 1 : world.rank() - 1;
  if (other == world.size()) return;
  const std::vector<int> ranks = {std::min(world.rank(), other), std::max(world.rank(), other)};
  Use before;
  std::array<Communicator, 8> living;
  for (int i = 0; i < count; ++i) {
    if (i == count / 10) before = use();
    Communicator group = world.group(ranks, "one.of.many", long_time);
    float value = 1;
    if (i % 10 == 0) group.all_reduce(std::span(&value, 1));
    report.expect(i % 10 != 0 || value == 2, "a sum of two");
    if (i % 2 == 0) living.at(static_cast<std::size_t>(i / 2) % living.size()) = group;
  }
  const Use after = use();
  report.expect(after.descriptors < before.descriptors + 20 && after.threads <= before.threads,
                fmt::format("{} descriptors and {} threads, then {} and {}", before.descriptors,
                            before.threads, after.descriptors, after.threads));
}

/// How long the members take, when all come at once and know each other.
void take_time(Communicator& world, Report& report) {
  constexpr int count = 200;
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    world.barrier();
    const Stopwatch watch;
    const Communicator group = world.group(all, "timed", long_time);
    times.push_back(std::chrono::duration<double, std::micro>(watch.elapsed()).count());
  }
  std::ranges::sort(times);
  const double median = times[count / 2];
  if (world.rank() == 0) {
    fmt::print("a group of {} ranks takes {:.0f} us, the median of {}\n", world.size(), median,
               count);
  }
  report.expect(median < 1000, fmt::format("{:.0f} us are too long", median));
}

// --- a rank that dies ---

int outlive(int rank, int size, const std::string& place) {
  Report report;
  Communicator world =
      hocket::join({.rank = rank, .size = size, .url = "file://" + place, .timeout = long_time});
  world.barrier();
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  const int last = size - 1;
  if (rank == last) {
    std::this_thread::sleep_for(short_time);
    std::_Exit(0);
  }
  const Stopwatch watch;
  const Status status = failure_of([&] { (void)world.group(all, "all", long_time); });
  const std::string what = fmt::format("death, rank {}: {}", rank, status.to_string());
  report.expect(status.code() == StatusCode::peer_lost && status.peer() == last, what);
  report.expect(watch.elapsed() < soon, "death, and long ago");
  all.pop_back();
  expect_members(world.group(all, "living", long_time), world, all, "survivors", report);
  return report.status();
}

int start_survivors() {
  constexpr int size = 4;
  const hocket::testing::TemporaryFolder folder;
  const std::string place = folder.path() + "/store";
  std::array<pid_t, size> processes = {};
  for (int rank = 0; rank < size; ++rank) {
    processes.at(static_cast<std::size_t>(rank)) = ::fork();
    if (processes.at(static_cast<std::size_t>(rank)) != 0) continue;
    int status = 1;
    try {
      status = outlive(rank, size, place);
    } catch (const std::exception& error) {
      std::printf("FAILED on rank %d: %s\n", rank, error.what());
      std::fflush(stdout);
    }
    std::exit(status);
  }
  int failures = 0;
  for (const pid_t process : processes) {
    int status = 0;
    ::waitpid(process, &status, 0);
    failures += status == 0 ? 0 : 1;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  const std::string_view what = count > 1 ? words[1] : "all";
  if (what == "survivors") return start_survivors();
  Report report;
  Communicator world = hocket::join();
  if (what == "time") {
    take_time(world, report);
    return report.status();
  }
  make_pairs(world, report);
  make_others(world, report);
  make_in_threads(world, report);
  disagree(world, report);
  come_late(world, report);
  be_refused(world, report);
  go_on_without_it(world, report);
  come_and_go(world, report);
  world.barrier({.timeout = long_time});
  return report.status();
}
