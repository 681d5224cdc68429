// What a program does with an operation under way, beside waiting for it: functions that are called
// at its end, operations that are given up, assignments, looks from any thread. Every rank runs it;
// `hocket run` starts them. Prints what is wrong, and fails then.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include "hocket/hocket.hpp"

#include "support/stopwatch.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::Message;
using hocket::Status;
using hocket::StatusCode;
using hocket::Work;
using hocket::testing::Stopwatch;
using Values = std::vector<std::uint32_t>;

constexpr auto patience = 60s;
std::atomic<int> failures = 0;

void expect(bool is_right, const std::string& what) {
  if (is_right) return;
  ++failures;
  std::printf("WRONG: %s\n", what.c_str());
}

Work start_sum(Communicator& group, Values& values) {
  return group.start(Collective::all_reduce(values, values));
}

/// A function that puts the status where get() waits for it.
class Told {
 public:
  [[nodiscard]] std::function<void(const Status&)> function() {
    return [status = status_](const Status& told) { status->set_value(told); };
  }
  [[nodiscard]] Status get() {
    auto told = status_->get_future();
    if (told.wait_for(patience) != std::future_status::ready) {
      throw std::runtime_error("a function was not called");
    }
    return told.get();
  }

 private:
  std::shared_ptr<std::promise<Status>> status_ = std::make_shared<std::promise<Status>>();
};

void then_early_and_late(Communicator& world) {
  for (int round = 0; round < 50; ++round) {
    Values values(100, 1);
    Work work = start_sum(world, values);
    std::array<Told, 3> told;
    work.then(told[0].function());
    work.then(told[1].function());
    if (round % 2 == 0) work.wait();
    work.then(told[2].function());
    for (Told& each : told) expect(each.get().ok(), "a function is told of a success");
    expect(values[99] == unsigned(world.size()), "the sum is there by then");
    work.wait();
  }
}

/// It may start and wait, also for an operation that another function starts.
void then_goes_on(Communicator& world) {
  Values values(10, 1);
  Values more(10, 1);
  Told told;
  Work first = start_sum(world, values);
  first.then([&](const Status&) {
    start_sum(world, more).wait();
    told.function()({});
  });
  expect(told.get().ok() && more[9] == unsigned(world.size()), "a function starts an operation");
}

void then_beside_on_end(Communicator& world) {
  std::atomic<int> ends = 0;
  const auto count = [](void* context, StatusCode) { ++*static_cast<std::atomic<int>*>(context); };
  Told told;
  Work work = world.start(Collective::barrier({.on_end = count, .on_end_context = &ends}));
  work.then(told.function());
  expect(told.get().ok(), "the function");
  const Stopwatch watch;
  while (ends == 0 && watch.elapsed() < patience) std::this_thread::sleep_for(1ms);
  expect(ends == 1, "and on_end");
}

void then_beside_a_queue(Communicator& world) {
  hocket::CompletionQueue queue;
  Told told;
  Told released;
  Work work = world.start(Collective::barrier({.queue = &queue, .queue_tag = 4}));
  work.then(told.function());
  work.detach(released.function());
  const auto end = queue.next(patience);
  expect(end && end->tag == 4 && told.get().ok() && released.get().ok(), "a queue and functions");
}

void given_up(Communicator& world) {
  for (int round = 0; round < 50; ++round) {
    auto values = std::make_shared<Values>(1000, 1);
    Told released;
    Work work = start_sum(world, *values);
    work.detach([values, &world, tell = released.function()](const Status& status) {
      expect((*values)[999] == unsigned(world.size()), "its memory was kept for it");
      tell(status);
    });
    expect(work.test() && work.status().ok(), "it has no operation any more");
    values.reset();
    expect(released.get().ok(), "its memory is given back");
  }
  Told at_once;
  Work().detach(at_once.function());
  expect(at_once.get().ok(), "what is over is released");
}

/// What was given up holds its communicator.
void outlives_its_communicator(Communicator& world) {
  auto values = std::make_shared<Values>(1000, 1);
  Told released;
  {
    Communicator group = world.dup();
    start_sum(group, *values).detach([values, tell = released.function()](const Status& status) {
      tell(status);
    });
  }
  expect(released.get().ok(), "its communicator went before it");
}

void failing(Communicator& world) {
  Communicator group = world.dup();
  Values room(1);
  Told told;
  Told late;
  Told released;
  Work work = group.start(Message::recv(room, world.rank(), 3, {.timeout = 50ms}));
  work.then(told.function());
  const Status status = told.get();
  expect(status.code() == StatusCode::timeout, "a function is told of a failure");
  expect(status.to_string().find("recv from") != std::string::npos, "and of what failed");
  work.then(late.function());
  expect(late.get().code() == status.code(), "late, it is told the same");
  expect(work.status().code() == status.code(), "the work says the same");
  work.detach(released.function());
  expect(released.get().code() == StatusCode::timeout, "and gives its memory back");
}

/// Assignments wait for what was there, and leave nothing of it where it came from.
void assigned(Communicator& world) {
  Values first(1000, 1);
  Values second(1000, 1);
  Work work = start_sum(world, first);
  Work other = start_sum(world, second);
  work = std::move(other);
  expect(first[999] == unsigned(world.size()), "an assignment waits");
  work.wait();
  expect(second[999] == unsigned(world.size()), "the operation has moved");
  work = {};
}

void from_threads(Communicator& world) {
  for (int round = 0; round < 20; ++round) {
    Values values(20'000, 1);
    Work work = start_sum(world, values);
    std::atomic<int> told = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) {
      threads.emplace_back([&, i] {
        if (i % 3 == 0) work.then([&](const Status& status) { told += status.ok() ? 1 : 0; });
        if (i % 3 == 1) work.wait();
        while (!work.test()) std::this_thread::yield();
        expect(work.status().ok(), "each thread is told");
      });
    }
    for (std::thread& each : threads) each.join();
    const Stopwatch watch;
    while (told < 2 && watch.elapsed() < patience) std::this_thread::sleep_for(1ms);
    expect(told == 2, "each function is called");
  }
}

void in_two_places(Communicator& world) {
  Values first(10, 1);
  Values second(10, 1);
  Work one = start_sum(world, first);
  Work other = start_sum(world, second);
  const std::array<Work*, 2> works = {&one, &other};
  const std::size_t which = hocket::wait_any(works);
  expect(works.at(which)->test(), "which is over");
  hocket::wait_all(works);
  expect(one.test() && other.test(), "all are over");
}

std::vector<hocket::AnyOperation> mixed(Communicator& world, Values& sum, std::vector<double>& all,
                                        std::vector<float>& room, std::vector<float>& sent) {
  const int next = (world.rank() + 1) % world.size();
  sum.assign(1000, 1);
  all.assign(static_cast<std::size_t>(world.size()), -1);
  all[static_cast<std::size_t>(world.rank())] = world.rank();
  room.assign(50'000, -1);
  sent.assign(50'000, static_cast<float>(world.rank()));
  const auto own = std::span(all).subspan(static_cast<std::size_t>(world.rank()), 1);
  return {Message::recv(room, hocket::any_rank, 9), Collective::all_reduce(sum),
          Collective::all_gather(own, all), Message::send(sent, next, 9), Collective::barrier()};
}

void many_as_one(Communicator& world) {
  Values sum;
  std::vector<double> all;
  std::vector<float> room;
  std::vector<float> sent;
  const int before = (world.rank() + world.size() - 1) % world.size();
  const auto expect_all = [&] {
    expect(sum[999] == unsigned(world.size()), "the sum of many");
    expect(all.front() == 0 && all.back() == world.size() - 1, "the gathered of many");
    expect(room.back() == static_cast<float>(before), "the message of many");
  };
  for (int round = 0; round < 20; ++round) {
    Work work = world.start_many(mixed(world, sum, all, room, sent));
    work.wait();
    expect_all();
  }
  hocket::CompletionQueue queue;
  (void)world.start_many(mixed(world, sum, all, room, sent), {.queue = &queue, .queue_tag = 8});
  const auto end = queue.next(patience);
  expect(end && end->tag == 8 && end->status.ok(), "many report once");
  expect_all();
  expect(!queue.next(0ns), "and not more often");
  Told released;
  world.start_many(mixed(world, sum, all, room, sent)).detach(released.function());
  expect(released.get().ok(), "many are given up");
  expect_all();
  world.start_many({}).wait();
}

void many_that_fail(Communicator& world) {
  Values values(10, 1);
  Values room(1);
  const auto refusal_of = [&](const std::vector<hocket::AnyOperation>& operations) {
    try {
      world.start_many(operations).wait();
    } catch (const hocket::Error& error) {
      return error.status();
    }
    return Status();
  };
  hocket::CompletionQueue queue;
  expect(refusal_of({Collective::barrier(), Message::send(values, world.size())}).code() ==
             StatusCode::invalid_argument,
         "a rank that there is not, and no barrier has begun");
  expect(
      refusal_of({Collective::barrier({.queue = &queue})}).code() == StatusCode::invalid_argument,
      "a queue for one of them");
  world.barrier();

  Communicator group = world.dup();
  const std::vector<hocket::AnyOperation> late = {
      Collective::all_reduce(values), Message::recv(room, world.rank(), 3, {.timeout = 50ms})};
  Work work = group.start_many(late);
  Status status;
  try {
    work.wait();
  } catch (const hocket::Error& error) {
    status = error.status();
  }
  expect(status.code() == StatusCode::timeout, "one of many comes too late: " + status.to_string());
  expect(status.to_string().find("recv from") != std::string::npos, "which of them");
}

void refused(Communicator& world) {
  Values values(10, 1);
  Work work = start_sum(world, values);
  for (const bool is_empty : {false, true}) {
    try {
      is_empty ? Work().then([](const Status&) {}) : work.then(nullptr);
      expect(false, "then without one of both");
    } catch (const hocket::InvalidArgument&) {
    }
  }
  work.detach(nullptr);
  world.barrier();
}

/// How often the other threads of this process have gone to sleep.
std::uint64_t naps_of_others() {
  std::uint64_t naps = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == std::to_string(::gettid())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      if (word == "voluntary_ctxt_switches:" && status >> word) naps += std::stoull(word);
    }
  }
  return naps;
}

/// A thread that woke up for each would take the processor of a rank that waits.
void waited_for_at_once(Communicator& world) {
  Values values = {1};
  constexpr int count = 1500;
  bool was_left_alone = false;
  std::string seen;
  for (int round = 0; round < 5; ++round) {  // on a busy machine it may be needed
    const std::uint64_t before = naps_of_others();
    const Stopwatch watch;
    for (int i = 0; i < count; ++i) start_sum(world, values).wait();
    const std::uint64_t naps = naps_of_others() - before;
    const auto milliseconds = static_cast<std::uint64_t>(watch.elapsed() / 1ms);
    if (naps < count / 3 + 3 * milliseconds) was_left_alone = true;
    seen += " " + std::to_string(naps) + " in " + std::to_string(milliseconds) + " ms";
  }
  expect(was_left_alone, "other threads have slept so often:" + seen);
}

}  // namespace

int main() {
  try {
    Communicator world = hocket::join({.operation_timeout = 60s});
    waited_for_at_once(world);
    then_early_and_late(world);
    then_goes_on(world);
    then_beside_on_end(world);
    then_beside_a_queue(world);
    given_up(world);
    outlives_its_communicator(world);
    failing(world);
    assigned(world);
    from_threads(world);
    in_two_places(world);
    many_as_one(world);
    many_that_fail(world);
    refused(world);
    world.barrier();
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
  return failures == 0 ? 0 : 1;
}
