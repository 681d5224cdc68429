// Operations that report to completion queues. Every rank runs it; `hocket run` starts them. With
// "time": how long an operation takes that reports to a queue, and one that is waited for. The
// first may take 1 us longer.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <poll.h>

#include "hocket/hocket.hpp"

#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Completion;
using hocket::CompletionQueue;
using hocket::Message;
using hocket::OperationOptions;
using hocket::testing::Stopwatch;
using Values = std::vector<std::uint32_t>;

constexpr auto patience = 60s;
int failures = 0;

double median(std::vector<double> of) {
  std::ranges::nth_element(of, of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2));
  return of[of.size() / 2];
}

void expect(bool is_right, const std::string& what) {
  if (is_right) return;
  ++failures;
  std::printf("WRONG: %s\n", what.c_str());
}

/// Drops the Work at once.
void start(Communicator& group, const Collective& operation) { (void)group.start(operation); }

void one_by_one(Communicator& world) {
  CompletionQueue queue;
  expect(!queue.next(0ns), "nothing is there at first");
  expect(!queue.next(10ms), "nor after a while");
  Values sums(1000, 1);
  for (std::uint64_t tag = 1; tag <= 100; ++tag) {
    sums.assign(1000, 1);
    start(world, Collective::all_reduce(sums, sums, {}, {.queue = &queue, .queue_tag = tag}));
    const auto end = queue.next(patience);
    expect(end && end->tag == tag && end->status.ok() && !end->received, "a completion");
    expect(sums[999] == unsigned(world.size()), "its sum");
  }
}

/// By polls without time, which move things on.
void by_polling(Communicator& world) {
  CompletionQueue queue;
  start(world, Collective::barrier({.queue = &queue, .queue_tag = 5}));
  std::optional<Completion> end;
  while (!end) end = queue.next(0ns);
  expect(end->tag == 5, "a completion by polls");
}

void many_at_once(Communicator& world) {
  CompletionQueue queue;
  Communicator other = world.dup();
  std::vector<Values> sums(50, Values(100, 1));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    start(i % 2 == 0 ? world : other,
          Collective::all_reduce(sums[i], sums[i], {}, {.queue = &queue, .queue_tag = i}));
  }
  std::set<std::uint64_t> tags;
  while (tags.size() < sums.size()) {
    const auto end = queue.next(patience);
    if (!end) throw std::runtime_error("a completion is missing");
    expect(end->status.ok() && tags.insert(end->tag).second, "one completion of each");
  }
  for (const Values& each : sums) expect(each[99] == unsigned(world.size()), "a sum of many");
  expect(!queue.next(0ns), "and no more");
}

void by_descriptor(Communicator& world) {
  CompletionQueue queue;
  pollfd entry = {.fd = queue.fd(), .events = POLLIN, .revents = 0};
  expect(::poll(&entry, 1, 0) == 0, "an empty queue is not readable");
  for (int round = 0; round < 20; ++round) {
    start(world, Collective::barrier({.queue = &queue, .queue_tag = 1}));
    start(world, Collective::barrier({.queue = &queue, .queue_tag = 2}));
    int ends = 0;
    while (ends < 2) {
      if (::poll(&entry, 1, 60'000) != 1) throw std::runtime_error("the descriptor says nothing");
      while (queue.next(0ns)) ++ends;
    }
    expect(ends == 2 && ::poll(&entry, 1, 0) == 0, "readable until all is taken");
  }
}

void messages(Communicator& world) {
  CompletionQueue queue;
  const int next = (world.rank() + 1) % world.size();
  const Values sent(10, unsigned(world.rank()));
  Values room(20);
  (void)world.start(Message::recv(room, hocket::any_rank, 3, {.queue = &queue, .queue_tag = 1}));
  (void)world.start(Message::send(sent, next, 3, {.queue = &queue, .queue_tag = 2}));
  std::map<std::uint64_t, Completion> ends;
  for (int i = 0; i < 2; ++i) {
    if (auto end = queue.next(patience)) ends[end->tag] = *end;
  }
  const int before = (world.rank() + world.size() - 1) % world.size();
  expect(ends.size() == 2 && ends[1].received && ends[1].received->peer == before &&
             ends[1].received->count == 10 && !ends[2].received,
         "what was received");
}

/// The Work is kept, and waited for.
void with_works(Communicator& world) {
  CompletionQueue queue;
  hocket::Work work = world.start(Collective::barrier({.queue = &queue, .queue_tag = 7}));
  work.wait();
  const auto end = queue.next(patience);
  expect(end && end->tag == 7 && work.status().ok(), "both say how it ended");
}

void failing(Communicator& world) {
  CompletionQueue queue;
  Communicator group = world.dup();
  Values room(1);
  (void)group.start(
      Message::recv(room, world.rank(), 3, {.timeout = 50ms, .queue = &queue, .queue_tag = 9}));
  const auto end = queue.next(patience);
  expect(end && end->tag == 9 && end->status.code() == hocket::StatusCode::timeout,
         "one that fails says why");
  expect(end && end->status.to_string().find("recv from") != std::string::npos, "and what it was");
  try {
    start(group, Collective::barrier({.queue = &queue}));
    const auto late = queue.next(patience);
    expect(late && !late->status.ok(), "a communicator that has failed");
  } catch (const hocket::Error&) {
    expect(!queue.next(0ns), "what could not begin does not report");
  }
}

void refused(Communicator& world) {
  CompletionQueue queue;
  const auto is_refused = [](const auto& work) {
    try {
      work();
    } catch (const hocket::InvalidArgument&) {
      return true;
    }
    return false;
  };
  const OperationOptions options = {.queue = &queue};
  expect(is_refused([&] { world.run(Collective::barrier(options)); }), "a blocking call");
  expect(is_refused([&] {
           start(world, Collective::barrier(
                            {.on_end = [](void*, hocket::StatusCode) {}, .queue = &queue}));
         }),
         "both on_end and a queue");
  expect(!queue.next(0ns), "neither reports");
}

/// Threads that take from one queue, and one that starts.
void from_threads(Communicator& world) {
  constexpr int many = 200;
  CompletionQueue queue;
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (taken < many) {
        if (queue.next(20ms)) ++taken;
      }
    });
  }
  for (int i = 0; i < many; ++i) start(world, Collective::barrier({.queue = &queue}));
  for (std::thread& each : threads) each.join();
  expect(taken == many, "each was taken once");
}

/// A thread that waits without a limit, for one world and then for another.
void without_limit(Communicator& world) {
  CompletionQueue queue;
  Communicator other = hocket::join({.name = "limitless"});
  constexpr int rounds = 100;
  std::atomic<int> taken = 0;
  std::thread taker([&] {
    for (int i = 0; i < 3 * rounds; ++i) {
      (void)queue.next();
      ++taken;
    }
  });
  Values room(1);
  const Values sent(1);
  for (int i = 0; i < rounds; ++i) {
    const int before = taken;
    // Waits for what this thread sends only after the other world has reported.
    (void)world.start(Message::recv(room, world.rank(), 8, {.queue = &queue}));
    if (i % 2 == 0) std::this_thread::sleep_for(1ms);  // so that the taker sleeps
    start(other, Collective::barrier({.queue = &queue}));
    for (int k = 0; k < 60'000 && taken == before; ++k) std::this_thread::sleep_for(1ms);
    expect(taken > before, "the other world reports");
    (void)world.start(Message::send(sent, world.rank(), 8, {.queue = &queue}));
    for (int k = 0; k < 60'000 && taken < before + 3; ++k) std::this_thread::sleep_for(1ms);
  }
  taker.join();
  expect(taken == 3 * rounds, "all are taken");
}

/// The queue goes, the communicator too, while operations are under way.
void left_behind(Communicator& world) {
  Values sums(100'000, 1);
  {
    CompletionQueue queue;
    Communicator group = world.dup();
    start(group, Collective::all_reduce(sums, sums, {}, {.queue = &queue}));
    group = {};
  }
  expect(sums[0] == unsigned(world.size()), "a queue waits for what reports to it");
}

/// Of two worlds.
void of_worlds(Communicator& world) {
  CompletionQueue queue;
  Communicator other = hocket::join({.name = "other"});
  for (int i = 0; i < 50; ++i) {
    start(world, Collective::barrier({.queue = &queue, .queue_tag = 1}));
    start(other, Collective::barrier({.queue = &queue, .queue_tag = 2}));
    std::uint64_t sum = 0;
    for (int k = 0; k < 2; ++k) {
      if (const auto end = queue.next(patience)) sum += end->tag;
    }
    expect(sum == 3, "both worlds report");
  }
}

/// In turns, as the machine's pace changes.
[[nodiscard]] bool measure(Communicator& world) {
  constexpr int times = 200;
  CompletionQueue queue;
  Values sum(2, 1);
  std::vector<double> waited;
  std::vector<double> reported;
  const auto us_each = [&](const auto& run) {
    world.barrier();
    const Stopwatch watch;
    for (int i = 0; i < times; ++i) run();
    return std::chrono::duration<double, std::micro>(watch.elapsed()).count() / times;
  };
  for (int round = 0; round < 200; ++round) {
    waited.push_back(us_each([&] { world.start(Collective::all_reduce(sum)).wait(); }));
    reported.push_back(us_each([&] {
      start(world, Collective::all_reduce(sum, sum, {}, {.queue = &queue}));
      (void)queue.next();
    }));
  }
  if (world.rank() > 0) return true;
  std::printf("a sum of 8 bytes: started and waited for %.2f us, reported by a queue %.2f us\n",
              median(waited), median(reported));
  return median(reported) < median(waited) + 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Communicator world = hocket::join({.operation_timeout = 60s});
    if (argc > 1 && std::string_view(argv[1]) == "time") {
      return measure(world) ? 0 : 1;
    }
    one_by_one(world);
    by_polling(world);
    many_at_once(world);
    by_descriptor(world);
    messages(world);
    with_works(world);
    failing(world);
    refused(world);
    from_threads(world);
    without_limit(world);
    left_behind(world);
    of_worlds(world);
    world.barrier();
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
