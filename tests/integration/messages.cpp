// Messages between the ranks of a world: each check is a function that all ranks call. Prints what
// is wrong, and fails then.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/rng.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Communicator;
using hocket::Message;
using hocket::Received;
using hocket::SeededRandom;
using hocket::Work;

using Values = std::vector<std::uint32_t>;

int failures = 0;

void expect(bool is_right, const std::string& what) {
  if (is_right) return;
  ++failures;
  std::fputs(fmt::format("WRONG: {}\n", what).c_str(), stdout);
}

/// What a message of so many elements holds, by its number.
Values made(std::size_t count, std::uint32_t number) {
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = number * 2654435761U + static_cast<std::uint32_t>(i);
  }
  return values;
}

// In elements of four bytes: nothing, the largest that goes ahead of its receive and one more.
constexpr std::size_t counts[] = {0, 1, 1023, 1024, 1025, 70'000, 1'000'003};

void in_a_circle(Communicator& world) {
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  for (const std::size_t count : counts) {
    const Values sent = made(count, static_cast<std::uint32_t>(world.rank()));
    Values room(count + 1, 7);
    const Received got =
        world.sendrecv(Message::send(sent, next, 3), Message::recv(room, previous, 3));
    expect(got.peer == previous && got.tag == 3 && got.count == count, "what is said of a message");
    expect(room.back() == 7, "memory behind a message is left alone");
    room.pop_back();
    expect(room == made(count, static_cast<std::uint32_t>(previous)), "the circle's values");
  }
}

void by_tag(Communicator& world) {
  if (world.rank() == 0) {
    std::vector<Work> works;
    std::vector<Values> sent;
    for (int tag = 0; tag < 6; ++tag) sent.push_back(made(counts[tag], 10U + unsigned(tag)));
    for (int tag = 0; tag < 6; ++tag) {
      works.push_back(world.start(Message::send(sent[std::size_t(tag)], 1, tag)));
    }
    wait_all(works);
  } else if (world.rank() == 1) {
    for (int tag = 5; tag >= 0; --tag) {
      Values room(counts[tag]);
      world.recv(room, 0, tag);
      expect(room == made(counts[tag], 10U + unsigned(tag)), "messages found by their tags");
    }
  }
}

void from_anybody(Communicator& world) {
  if (world.rank() != 0) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{5000}}) {
      world.send(made(count, unsigned(world.rank())), 0, world.rank());
    }
    return;
  }
  std::vector<int> seen(std::size_t(world.size()));
  for (int i = 0; i < 2 * (world.size() - 1); ++i) {
    Values room(5000);
    const Received got = world.recv(room);
    expect(got.tag == got.peer, "tag and rank of a message from anybody");
    const std::size_t count = ++seen[std::size_t(got.peer)] == 1 ? 5 : 5000;
    expect(got.count == count, "messages of one rank keep their order");
    room.resize(got.count);
    expect(room == made(count, unsigned(got.peer)), "values from anybody");
  }
  expect(std::count(seen.begin() + 1, seen.end(), 2) == world.size() - 1, "all were heard");
}

/// Far more than a sender may be ahead, in both directions at once, received late and in order.
void floods(Communicator& world) {
  if (world.rank() > 1) return;
  const int peer = 1 - world.rank();
  constexpr std::uint32_t many = 2000;
  std::vector<Values> sent;
  std::vector<Work> works;
  for (std::uint32_t i = 0; i < many; ++i) sent.push_back(made(i % 40, i));
  for (const Values& each : sent) {
    works.push_back(world.start(Message::send(each, peer)));
  }
  Values room(40);
  for (std::uint32_t i = 0; i < many; ++i) {
    room.resize(40);
    room.resize(world.recv(room, peer, 0).count);
    expect(room == made(i % 40, i), "the order of a flood");
  }
  wait_all(works);
}

void to_itself(Communicator& world) {
  for (const std::size_t count : counts) {
    const Values sent = made(count, 5);
    Values room(count);
    Work sending = world.start(Message::send(sent, world.rank(), 9));
    expect(world.recv(room, world.rank(), 9).peer == world.rank(), "itself");
    sending.wait();
    expect(room == sent, "values of a message to itself");
  }
}

/// Messages of any size and tag from all to all, received in an order of the receiver's.
void at_random(Communicator& world, std::uint64_t seed) {
  struct Letter {
    int from, to, tag;
    std::size_t count;
    std::uint32_t number;
  };
  SeededRandom random(seed);
  std::vector<Letter> letters;
  for (std::uint32_t i = 0; i < 150; ++i) {
    const auto size = static_cast<std::uint64_t>(world.size());
    letters.push_back({int(random.below(size)), int(random.below(size)), int(random.below(3)),
                       std::size_t(random.below(4) == 0 ? random.below(60'000) : random.below(900)),
                       i});
  }
  std::vector<Values> sent;
  std::vector<Work> works;
  for (const Letter& each : letters) {
    if (each.from == world.rank()) sent.push_back(made(each.count, each.number));
  }
  std::size_t next = 0;
  for (const Letter& each : letters) {
    if (each.from != world.rank()) continue;
    works.push_back(world.start(Message::send(sent[next++], each.to, each.tag)));
  }
  std::vector<Letter> mine;
  for (const Letter& each : letters) {
    if (each.to == world.rank()) mine.push_back(each);
  }
  // Any order, but that of messages with one sender and tag.
  std::stable_sort(mine.begin(), mine.end(), [&](const Letter& a, const Letter& b) {
    const auto weight = [&](const Letter& l) { return (l.tag * 7 + l.from * 13 + int(seed)) % 5; };
    return weight(a) < weight(b);
  });
  for (const Letter& each : mine) {
    Values room(each.count);
    world.recv(room, each.from, each.tag);
    expect(room == made(each.count, each.number), fmt::format("letter {}", each.number));
  }
  wait_all(works);
}

void beside_collectives(Communicator& world) {
  Values sums(50'000, 1);
  Work summing = world.start(hocket::Collective::all_reduce(sums, sums));
  in_a_circle(world);
  summing.wait();
  expect(sums == Values(50'000, unsigned(world.size())), "an all-reduce beside messages");
}

/// What operations say when they are over.
struct Ends {
  std::atomic<int> count = 0;
  std::atomic<hocket::StatusCode> last = hocket::StatusCode::ok;

  [[nodiscard]] hocket::OperationOptions options(
      std::optional<std::chrono::nanoseconds> timeout = {}) {
    return {.timeout = timeout,
            .on_end =
                [](void* ends, hocket::StatusCode status) {
                  auto& self = *static_cast<Ends*>(ends);
                  self.last = status;
                  ++self.count;
                },
            .on_end_context = this};
  }
  [[nodiscard]] bool are(int wanted, hocket::StatusCode status) const {
    return count == wanted && last == status;
  }
  /// The same, soon.
  [[nodiscard]] bool will_be(int wanted, hocket::StatusCode status) const {
    for (int i = 0; i < 20'000 && count < wanted; ++i) std::this_thread::sleep_for(1ms);
    return are(wanted, status);
  }
};

void calls_at_the_end(Communicator& world) {
  using hocket::StatusCode;
  Ends ends;
  Values values(1000, 1);
  Values room(1000);
  const auto sum = hocket::Collective::all_reduce(values, room, {}, ends.options());
  world.run(sum);
  expect(ends.are(1, StatusCode::ok), "a call at the end of an operation");
  Work work = world.start(sum);
  work.wait();
  work.wait();
  expect(ends.will_be(2, StatusCode::ok), "one call of one that was started");
  world.start(hocket::Collective::barrier()).wait();
  expect(ends.are(2, StatusCode::ok), "no call of one that asks for none");
  world.sendrecv(Message::send(values, world.rank(), 1, ends.options()),
                 Message::recv(room, world.rank(), 1, ends.options()));
  expect(ends.will_be(4, StatusCode::ok), "calls at the ends of messages");
  Communicator late = world.dup();
  Work never = late.start(Message::recv(room, world.rank(), 1, ends.options(50ms)));
  while (!never.test()) std::this_thread::sleep_for(1ms);
  expect(ends.will_be(5, StatusCode::timeout), "a call at the end of one that fails");
}

/// Each function waits until all have been called, as futures do that wait for others.
void calls_that_wait_for_each_other(Communicator& world) {
  constexpr int many = 5;
  static std::atomic<int> called = 0;
  static std::atomic<int> ended = 0;
  called = ended = 0;
  const hocket::OperationOptions options = {.on_end = [](void*, hocket::StatusCode) {
    ++called;
    for (int i = 0; i < 20'000 && called < many; ++i) std::this_thread::sleep_for(1ms);
    ++ended;
  }};
  for (int i = 0; i < many; ++i) world.start(hocket::Collective::barrier(options)).wait();
  for (int i = 0; i < 20'000 && ended < many; ++i) std::this_thread::sleep_for(1ms);
  expect(called == many && ended == many, "calls that wait for each other");
}

/// What is called runs operations itself, and waits for them.
void calls_that_call_hocket(Communicator& world) {
  struct Sum {
    Communicator group;
    std::atomic<std::uint32_t> value = 0;
  };
  Sum sum{.group = world.dup()};
  const hocket::OperationOptions options = {.on_end =
                                                [](void* context, hocket::StatusCode) {
                                                  auto& self = *static_cast<Sum*>(context);
                                                  Values one(1, 1);
                                                  self.group.all_reduce(std::span(one));
                                                  self.value = one[0];
                                                },
                                            .on_end_context = &sum};
  const Work work = world.start(hocket::Collective::barrier(options));
  for (int i = 0; i < 20'000 && sum.value == 0; ++i) std::this_thread::sleep_for(1ms);
  expect(sum.value == static_cast<unsigned>(world.size()), "a call that runs an operation");
}

void says_how_it_ended(Communicator& world) {
  using hocket::StatusCode;
  Values room(10);
  const Values sent(10, 3);
  const int self = world.rank();
  Work receiving = world.start(Message::recv(room, self, 7, {.timeout = 60s}));
  expect(receiving.status().code() == StatusCode::in_progress, "no status while it is under way");
  expect(!receiving.wait_for(0ns) && !receiving.wait_for(1ms), "it has not ended");
  expect(receiving.status().code() == StatusCode::in_progress,
         "nor after a wait that was too short");
  world.send(sent, self, 7);
  receiving.wait();
  expect(receiving.status().ok() && room == sent, "the status of one that went well");

  Communicator hasty = world.dup();
  Work at_once = hasty.start(Message::recv(room, self, 7, {.timeout = 0ns}));
  while (!at_once.test()) std::this_thread::sleep_for(1ms);
  expect(at_once.status().code() == StatusCode::timeout, "a timeout of zero is no time at all");
}

void refused_timeouts() {
  for (const hocket::JoinOptions& each :
       {hocket::JoinOptions{.timeout = -1ns}, hocket::JoinOptions{.operation_timeout = -1ns}}) {
    try {
      static_cast<void>(hocket::join(each));
      expect(false, "a timeout below zero must be refused");
    } catch (const hocket::InvalidArgument& failure) {
      expect(std::string_view(failure.what()).find("below zero") != std::string_view::npos,
             failure.what());
    }
  }
}

/// A receive that fails alone leaves the communicator as it is.
void failing_alone(Communicator& world) {
  Communicator group = world.dup();
  Values room(100'000);
  const Values sent(100'000, 5);
  const auto receive = [&](int peer, std::chrono::nanoseconds timeout) {
    Message message = Message::recv(room, peer, 3, {.timeout = timeout});
    message.fails_alone = true;
    return message;
  };
  const auto is_late = [&](const Message& message) {
    try {
      group.run(message);
    } catch (const hocket::Timeout& failure) {
      return failure.status().peer() == message.peer;
    }
    return false;
  };
  const int next = (group.rank() + 1) % group.size();
  const int previous = (group.rank() + group.size() - 1) % group.size();
  for (int round = 0; round < 3; ++round) {
    expect(is_late(receive(previous, 20ms)), "a receive that nothing came for");
    expect(is_late(receive(hocket::any_rank, 1ms)), "a receive of any rank");
    std::fill(room.begin(), room.end(), 0U);
    group.barrier();  // nobody sends while others still give up
    Work sending = group.start(Message::send(sent, next, 3));
    group.run(receive(previous, 10s));
    sending.wait();
    expect(room == sent, "the message that comes later is for the receive that comes later");
    group.barrier();
  }
  // Two threads wait: the one that does not move things on is told as well.
  Work first = group.start(receive(previous, 50ms));
  Work second = group.start(receive(previous, 100ms));
  const auto ends_late = [](Work& work) {
    try {
      return !work.wait_for(10s);
    } catch (const hocket::Timeout&) {
      return true;
    }
  };
  std::atomic<bool> is_second_told = false;
  std::thread waits([&] { is_second_told = ends_late(second) && second.test(); });
  expect(ends_late(first) && first.test(), "this thread is told");
  waits.join();
  expect(is_second_told, "the other thread is told");
  Message send = Message::send(sent, next, 3);
  send.fails_alone = true;
  try {
    group.run(send);
    expect(false, "a send that fails alone must be refused");
  } catch (const hocket::InvalidArgument&) {
  }
  group.barrier();
}

template <class Failure, class Do>
void expect_failure(const std::string& what, int peer, Do&& operation) {
  try {
    operation();
    expect(false, what + " must fail");
  } catch (const Failure& failure) {
    expect(failure.status().peer() == peer, fmt::format("{}: {}", what, failure.what()));
  }
}

void failing(Communicator& world) {
  Communicator short_of_room = world.dup();
  Communicator late = world.dup();
  Values room(10);
  const Values sent(11);
  if (world.rank() == 1) short_of_room.send(sent, 0);
  if (world.rank() == 0) {
    expect_failure<hocket::Mismatch>("a message longer than its room", 1,
                                     [&] { short_of_room.recv(room, 1); });
    expect_failure<hocket::Timeout>("a message that nobody sends", 1,
                                    [&] { late.recv(room, 1, 0, {.timeout = 200ms}); });
    expect_failure<hocket::Timeout>("a communicator that failed", 1, [&] { late.send(sent, 1); });
  }
  expect_failure<hocket::InvalidArgument>("a tag below zero", -1, [&] { world.send(sent, 1, -1); });
  expect_failure<hocket::InvalidArgument>("a rank that is none", -1, [&] { world.send(sent, 99); });
  for (const hocket::OperationOptions& options :
       {hocket::OperationOptions{.memory = hocket::MemoryKind::device},
        hocket::OperationOptions{.memory = static_cast<hocket::MemoryKind>(5)},
        hocket::OperationOptions{.stream = hocket::Stream{}}}) {
    expect_failure<hocket::InvalidArgument>("a message that is not of the host's memory", -1,
                                            [&] { world.send(sent, 0, 0, options); });
  }
  world.barrier();
}

}  // namespace

int main() {
  try {
    Communicator world = hocket::join({.operation_timeout = 60s});
    in_a_circle(world);
    by_tag(world);
    world.barrier();
    from_anybody(world);
    world.barrier();
    floods(world);
    to_itself(world);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) at_random(world, seed);
    beside_collectives(world);
    calls_at_the_end(world);
    calls_that_wait_for_each_other(world);
    calls_that_call_hocket(world);
    says_how_it_ended(world);
    refused_timeouts();
    failing_alone(world);
    failing(world);
    world.barrier();
  } catch (const std::exception& failure) {
    expect(false, failure.what());
  }
  return failures == 0 ? 0 : 1;
}
