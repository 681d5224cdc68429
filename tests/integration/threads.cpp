// Eight threads on one communicator, which order nothing among themselves: their operations are
// alike, so it does not matter which of them meets which. Every rank runs it; `hocket run` starts
// them. Prints what is wrong, and fails then.
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Message;
using hocket::Work;
using hocket::testing::Report;
using Values = std::vector<std::int64_t>;

constexpr int threads = 8;
constexpr int rounds = 50;

/// Calls it with the number of each thread.
void in_threads(Report& report, const std::string& what, const std::function<void(int)>& call) {
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      const hocket::Status failure = hocket::testing::failure_of([&] { call(i); });
      if (!failure.ok()) report.add(fmt::format("{}: {}", what, failure.to_string()));
    });
  }
  for (std::thread& each : all) each.join();
}

class Subjects {
 public:
  Subjects(Communicator& world, Report& report) : world_(world), report_(report) {}

  void sum(std::size_t count) {
    Values values(count, 1);
    world_.all_reduce(values);
    expect(values.front() == world_.size() && values.back() == world_.size(), "a sum");
  }

  void sum_in_background() {
    std::array<Values, 3> values;
    std::array<Work, 3> works;
    for (std::size_t i = 0; i < works.size(); ++i) {
      values.at(i).assign(4, 1);
      works.at(i) = world_.start(Collective::all_reduce(values.at(i)));
    }
    hocket::wait_all(works);
    for (const Values& each : values) expect(each[3] == world_.size(), "a sum in the background");
  }

  /// To the next rank, and from the one before: with tags of its own each thread.
  void send_around(int thread) {
    const int next = (world_.rank() + 1) % world_.size();
    const int before = (world_.rank() + world_.size() - 1) % world_.size();
    for (const std::size_t count : {std::size_t{1}, std::size_t{2000}, std::size_t{40'000}}) {
      const Values sent(count, thread);
      Values room(count);
      world_.sendrecv(Message::send(sent, next, thread), Message::recv(room, before, thread));
      expect(room.back() == thread, "a message of another thread");
    }
  }

  void make_groups(int thread) {
    std::vector<int> all(static_cast<std::size_t>(world_.size()));
    std::iota(all.begin(), all.end(), 0);
    Communicator group = world_.group(all, fmt::format("thread.{}", thread));
    Values values(3, thread);
    group.all_reduce(values);
    expect(values[2] == std::int64_t{thread} * world_.size(), "a sum in a group");
  }

 private:
  void expect(bool holds, const std::string& what) { report_.expect(holds, what); }

  Communicator& world_;
  Report& report_;
};

}  // namespace

int main() {
  Report report;
  Communicator world = hocket::join({.operation_timeout = 100s});
  Subjects subjects(world, report);
  in_threads(report, "the first of all", [&](int) { subjects.sum(4); });
  for (const std::size_t count : {std::size_t{4}, std::size_t{50'000}}) {
    in_threads(report, "sums", [&](int) {
      for (int i = 0; i < rounds; ++i) subjects.sum(count);
    });
  }
  in_threads(report, "in the background", [&](int) {
    for (int i = 0; i < rounds; ++i) subjects.sum_in_background();
  });
  in_threads(report, "barriers", [&](int) {
    for (int i = 0; i < rounds; ++i) world.barrier();
  });
  in_threads(report, "monitored barriers", [&](int) { world.monitored_barrier(); });
  in_threads(report, "messages beside sums", [&](int thread) {
    for (int i = 0; i < rounds; ++i) {
      thread % 2 == 0 ? subjects.send_around(thread) : subjects.sum(4);
    }
  });
  in_threads(report, "groups", [&](int thread) {
    for (int i = 0; i < 3; ++i) subjects.make_groups(thread);
  });
  world.barrier();
  return report.status();
}
