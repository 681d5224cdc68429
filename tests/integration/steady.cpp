// What operations cost: little memory beside the user's, and once they have run a few times none
// from the heap; and while a rank waits, hardly any processor. All ranks of a world run it; it
// prints what is wrong, and fails then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/resource.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "support/operator_new.hpp"

namespace {

std::atomic<std::uint64_t> allocations = 0;

}  // namespace

void hocket::testing::on_allocation() { ++allocations; }

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Message;
using hocket::monotonic_clock;
using hocket::Work;

constexpr std::size_t small = 16;
constexpr std::size_t large = 300'000;  // several segments

bool is_right = true;

void wrong(const std::string& what) {
  is_right = false;
  std::fputs(fmt::format("WRONG: {}\n", what).c_str(), stdout);
}

struct Subject {
  const char* name;
  std::function<void()> run;
};

/// One line of /proc/self/status, in bytes.
std::size_t memory(std::string_view line) {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != line) {
  }
  std::size_t kib = 0;
  status >> kib;
  return kib << 10;
}

/// Of the whole process but for the buffers, however large an operation is. Without the pages of
/// program and libraries: how many of them are in memory is the system's choice.
void check_memory(Communicator& world) {
  // Shared memory counts for each rank that maps it: its own messages on the way, up to 1 MiB for
  // each peer, and theirs.
  const bool shares_memory = world.transport().find("shm") != std::string_view::npos;
  const std::size_t most_mib = shares_memory ? 10 : 3;
  constexpr std::size_t bytes = std::size_t{64} << 20;
  std::vector<float> own(bytes / sizeof(float), 1.0F);
  for (int i = 0; i < 3; ++i) world.all_reduce(own);
  std::vector<float> all(own.size() * static_cast<std::size_t>(world.size()));
  world.all_gather(own, all);
  const std::size_t users = (own.size() + all.size()) * sizeof(float);
  const std::size_t programs = memory("RssFile:");
  const std::size_t beyond = memory("VmHWM:") - programs - users;
  fmt::print("memory beyond the buffers: {:.1f} MiB, and {:.1f} MiB of program and libraries\n",
             static_cast<double>(beyond) / (1 << 20), static_cast<double>(programs) / (1 << 20));
  if (beyond > most_mib << 20)
    wrong(fmt::format("that is more than {} MiB beyond the buffers", most_mib));
}

/// Of the call, in all threads.
std::uint64_t allocations_of(const std::function<void()>& call, int times) {
  const std::uint64_t before = allocations;
  for (int i = 0; i < times; ++i) call();
  return allocations - before;
}

void check_allocations(Communicator& world) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<float> in(large * ranks, 1.0F);
  std::vector<float> out(large * ranks);
  const auto first = [](std::vector<float>& of, std::size_t count) {
    return std::span(of).first(count);
  };
  const auto all_reduce = [&](std::size_t count) {
    return Collective::all_reduce(first(in, count), first(out, count));
  };
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  const auto pass_on = [&](std::size_t count) {
    world.sendrecv(Message::send(first(in, count), next),
                   Message::recv(first(out, count), previous));
  };
  hocket::Prepared prepared = world.prepare(all_reduce(small));
  std::vector<hocket::Piece> pieces;
  for (std::size_t i = 0; i < 100; ++i) pieces.push_back({&out[i * 20], i % 7});
  const Subject subjects[] = {
      {"all_reduce", [&] { world.run(all_reduce(small)); }},
      {"large all_reduce", [&] { world.run(all_reduce(large)); }},
      {"average", [&] { world.all_reduce(first(out, small), hocket::ReduceOp::average); }},
      {"broadcast", [&] { world.broadcast(first(in, large), 1); }},
      {"all_gather", [&] { world.all_gather(first(in, large), first(out, large * ranks)); }},
      {"all_to_all",
       [&] {
         world.run(
             Collective::all_to_all(first(in, small * ranks), first(out, small * ranks), small));
       }},
      {"batch", [&] { world.run(Collective::all_reduce<float>(pieces)); }},
      {"barrier", [&] { world.barrier(); }},
      {"prepared all_reduce", [&] { prepared.run(); }},
      {"started all_reduce", [&] { world.start(all_reduce(small)).wait(); }},
      {"three at once",
       [&] {
         Work a = world.start(all_reduce(small));
         Work b = prepared.start();
         Work c = world.start(all_reduce(large));
         a.wait();
         b.wait();
         c.wait();
       }},
      {"the first of two",
       [&] {
         Work both[] = {world.start(all_reduce(small)), prepared.start()};
         hocket::wait_any(both);
         hocket::wait_all(both);
       }},
      {"message", [&] { pass_on(small); }},
      {"large message", [&] { pass_on(large); }},
  };
  // What is kept grows until it is as much as was ever needed at once, by ranks that may be far
  // ahead of each other: of several rounds, one is without.
  constexpr int rounds = 5;
  constexpr int times = 100;
  std::vector<std::uint64_t> fewest(std::size(subjects), UINT64_MAX);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < fewest.size(); ++i) {
      world.barrier();
      fewest[i] = std::min(fewest[i], allocations_of(subjects[i].run, times));
    }
  }
  for (std::size_t i = 0; i < fewest.size(); ++i) {
    if (fewest[i] == 0) continue;
    wrong(fmt::format("{} takes memory {} times in {} calls", subjects[i].name, fewest[i], times));
  }
}

std::chrono::microseconds processor_time() {
  rusage usage = {};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/// Of the processor, while the last rank keeps the others waiting.
void check_idle(Communicator& world, const char* name, const std::function<void()>& wait) {
  constexpr auto time = 10s;
  world.barrier();
  if (world.rank() == world.size() - 1) std::this_thread::sleep_for(time);
  const auto before = processor_time();
  const hocket::Instant start = monotonic_clock().now();
  wait();
  const auto waited = monotonic_clock().now() - start;
  const double share = std::chrono::duration<double>(processor_time() - before) /
                       std::chrono::duration<double>(waited);
  if (waited > time / 2 && share > 0.02) {
    wrong(fmt::format("{} uses {:.1f} % of a processor", name, share * 100));
  }
}

}  // namespace

int main() {
  Communicator world = hocket::join();
  check_memory(world);
  check_allocations(world);
  check_idle(world, "a rank that waits", [&] { world.barrier(); });
  check_idle(world, "what goes on in the background", [&] {
    Work work = world.start(Collective::barrier());
    while (!work.test()) std::this_thread::sleep_for(100ms);
  });
  return is_right ? 0 : 1;
}
