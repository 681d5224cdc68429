#include "integration/collectives/troubles.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "support/stopwatch.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t large = 300'000;

void print(const std::string& line) {
  std::fputs((line + "\n").c_str(), stdout);
  std::fflush(stdout);
}

std::string in_a_word(StatusCode code) {
  std::string text(name(code));
  std::ranges::replace(text, ' ', '_');
  return text;
}

/// "outcome: code=peer_lost rank=0 peer=3 seconds=0.2", and the error in full.
template <class Work>
bool print_outcome(Work work) {
  const Stopwatch watch;
  const auto seconds = [&] { return std::chrono::duration<double>(watch.elapsed()).count(); };
  try {
    work();
  } catch (const Error& error) {
    print(fmt::format("outcome: code={} rank={} peer={} seconds={:.1f} operation={}\n{}",
                      in_a_word(error.code()), error.rank(), error.peer(), seconds(),
                      error.operation(), error.what()));
    return false;
  }
  print(fmt::format("outcome: code=ok seconds={:.1f}", seconds()));
  return true;
}

/// Long enough to tell others why it failed, who may ask: a process that is gone can't.
void stay() { std::this_thread::sleep_for(1s); }

bool is_last(const Communicator& world) { return world.rank() == world.size() - 1; }

void sum(Communicator& world, std::size_t count, std::chrono::nanoseconds timeout) {
  std::vector<float> values(count, 1);
  world.all_reduce(values, {}, {.timeout = timeout});
}

/// What failed stays so, and at once; what has nothing to do with it goes on.
void go_on(Communicator& world, Communicator& other, Report& report) {
  const Stopwatch watch;
  try {
    sum(world, 5, 30s);
    report.add("a communicator goes on after it failed");
  } catch (const Error&) {
    report.expect(watch.elapsed() < 5s, "a later operation took its time to fail");
  }
  std::vector<float> values(3, 1);
  other.all_reduce(values);
  report.expect(values[0] == static_cast<float>(other.size()),
                "another communicator gives something else");
}

void call_another_count(Communicator& world, Report& report) {
  Communicator other = world.dup();
  print_outcome([&] { sum(world, is_last(world) ? 1100 : 1000, 2s); });
  go_on(world, other, report);
}

void call_another_operation(Communicator& world, Report& report) {
  Communicator other = world.dup();
  print_outcome([&] {
    if (!is_last(world)) return sum(world, 1000, 2s);
    std::vector<float> all(static_cast<std::size_t>(world.size()) * 10);
    world.all_gather(std::vector<float>(10), all, {.timeout = 2s});
  });
  go_on(world, other, report);
}

void come_late(Communicator& world, Report& report) {
  Communicator other = world.dup();
  if (is_last(world)) std::this_thread::sleep_for(4s);
  print_outcome([&] { sum(world, 1000, 1s); });
  go_on(world, other, report);
}

/// As come_late, but that the others have work in the background, and wait for one behind it.
void come_late_to_many(Communicator& world, Report& report) {
  Communicator other = world.dup();
  if (is_last(world)) std::this_thread::sleep_for(4s);
  std::vector<std::vector<float>> values(5, std::vector<float>(1000));
  std::vector<Work> works;
  print_outcome([&] {
    // Once the late one has found that the communicator failed, it can't begin others.
    for (auto& each : values) {
      works.push_back(world.start(Collective::all_reduce(each, each, {}, {.timeout = 1s})));
    }
    wait_all(works);
  });
  report.expect(is_last(world) || works.size() == values.size(), "one could not begin");
  for (Work& each : works) {
    report.expect(each.test(), "one is not over");
    report.expect(is_last(world) || !each.status().ok(), "one did not fail");
  }
  go_on(world, other, report);
}

void go_away(Communicator& world, Report& report) {
  Communicator other = world.dup();
  other.barrier();
  if (is_last(world)) {
    world = {};
  } else {
    print_outcome([&] { sum(world, large, 30s); });
    go_on(world, other, report);
  }
  if (!world) sum(other, 3, 30s);  // go_on() of the others
}

void die(Communicator& world, Report& report) {
  std::vector<float> values(large);
  if (!is_last(world)) {
    print_outcome([&] {
      for (int i = 0; i < 2; ++i) sum(world, large, 30s);  // of which the last rank begins one
    });
    report.expect(!print_outcome([&] { sum(world, 5, 30s); }),
                  "an operation without its last rank");
    return stay();
  }
  const Work work = world.start(Collective::all_reduce(values, values));
  _exit(0);
}

/// Ends as a program does, with operations under way that can't be over.
void leave(Communicator& world, Report&) {
  // Which the end of the program leaves alone, as threads may still be at it.
  static std::vector<float>& values = *new std::vector<float>(large);
  if (!is_last(world)) {
    print_outcome([&] {
      for (int i = 0; i < 4; ++i) sum(world, large, 30s);
    });
    return stay();
  }
  const Work work = world.start(Collective::all_reduce(values, values));
  const Work more = world.start(Collective::all_reduce(values, values));
  std::exit(0);
}

/// Until a rank is killed by somebody else.
void work_for_ever(Communicator& world, Report&) {
  sum(world, 10, 30s);
  print(fmt::format("ready: rank={} pid={}", world.rank(), getpid()));
  print_outcome([&] {
    const Stopwatch watch;
    for (std::size_t i = 0; watch.elapsed() < 60s; ++i)
      sum(world, i % 3 == 0 ? large : i % 100, 50s);
  });
  stay();
}

/// All wait for the one that will be killed.
void wait_for_ever(Communicator& world, Report&) {
  sum(world, 10, 30s);
  print(fmt::format("ready: rank={} pid={}", world.rank(), getpid()));
  if (is_last(world)) std::this_thread::sleep_for(60s);
  print_outcome([&] { sum(world, 10, 50s); });
  stay();
}

struct Trouble {
  std::string_view name;
  void (*run)(Communicator& world, Report& report);
};

constexpr Trouble troubles[] = {
    {"another_count", call_another_count},
    {"another_operation", call_another_operation},
    {"late", come_late},
    {"late_to_many", come_late_to_many},
    {"go_away", go_away},
    {"die", die},
    {"leave", leave},
    {"work_for_ever", work_for_ever},
    {"wait_for_ever", wait_for_ever},
};

}  // namespace

bool try_trouble(std::string_view name, Communicator& world, Report& report) {
  const auto found = std::ranges::find(troubles, name, &Trouble::name);
  if (found == std::end(troubles)) return false;
  found->run(world, report);
  return true;
}

}  // namespace hocket::testing
