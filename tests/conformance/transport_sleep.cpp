// Sleeping: whoever was told that he may, wakes when there is something to do.
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <thread>

#include <poll.h>

#include <fmt/format.h>

#include "conformance/transport_conformance.hpp"
#include "conformance/transport_world.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

/// A rank in a thread of its own, which sleeps whenever it may. Failures are texts: the assertions
/// of the test framework belong to one thread.
class Sleeper {
 public:
  explicit Sleeper(Transport& transport) : transport_(transport) {}

  /// Why the op did not end well; empty when it did.
  std::string run(TransportOp op) {
    op.token = 1;
    while (transport_.post({&op, 1}) == 0) {
      if (std::string why = sleep(); !why.empty()) return why;
    }
    TransportCompletion completion;
    while (transport_.poll({&completion, 1}) == 0) {
      if (std::string why = sleep(); !why.empty()) return why;
    }
    return completion.status.ok() ? "" : completion.status.to_string();
  }

 private:
  std::string sleep() {
    if (!transport_.prepare_to_sleep()) return {};
    pollfd entry = {.fd = transport_.descriptor(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(soon / 1ms));
    return ready == 1 ? "" : "nothing woke the sleeper";
  }

  Transport& transport_;
};

std::string play(Transport& transport, std::uint32_t rank, int rounds) {
  const auto channel = transport.open(1 - rank, 0);
  if (!channel.ok()) return channel.status().to_string();
  Sleeper sleeper(transport);
  std::mt19937 random(rank + 1);
  Parcel sent(100'000);
  Parcel received(100'000);
  for (int i = 0; i < rounds; ++i) {
    if (random() % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    const std::uint64_t bytes = i % 20 == 0 ? sent.bytes() : static_cast<std::uint64_t>(i % 100);
    for (const bool sends : {rank == 0, rank != 0}) {
      const TransportOp send = {.channel = *channel, .first = {sent.first().data, bytes}};
      const TransportOp receive = {
          .kind = TransportOp::Kind::recv, .channel = *channel, .first = received.first()};
      if (std::string why = sleeper.run(sends ? send : receive); !why.empty()) {
        return fmt::format("rank {}, round {}: {}", rank, i, why);
      }
    }
  }
  return {};
}

}  // namespace

TRANSPORT_TEST("sleepers lose no wake-up") {
  if (!subject.crosses_processes) return;
  TransportWorld world(subject, 2);
  if (world.at(0).descriptor() < 0) return;
  std::string failures[2];
  std::thread other([&] { failures[1] = play(world.at(1), 1, 600); });
  failures[0] = play(world.at(0), 0, 600);
  other.join();
  REQUIRE(failures[0].empty());
  REQUIRE(failures[1].empty());
}

TRANSPORT_TEST("a large message moves before it is over, and nothing moves afterwards") {
  TransportWorld world(subject, 2);
  Parcel sent(10'000'000);
  Parcel received(10'000'000);
  world.send(0, 1, 0, sent);
  world.receive(1, 0, 0, received);
  bool has_moved = false;
  world.pump_until("the message has come", [&] {
    const bool is_under_way = world.outstanding() == 2;
    has_moved |= is_under_way && (world.at(0).has_moved() || world.at(1).has_moved());
    return world.outstanding() == 0;
  });
  REQUIRE((has_moved || !subject.tells_of_parts));
  world.pump_rounds(10);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    TransportCompletion none;
    static_cast<void>(world.at(rank).poll({&none, 1}));
    REQUIRE_FALSE(world.at(rank).has_moved());
  }
}

TRANSPORT_TEST("who sleeps on a peer that can't be reached wakes to hear of it") {
  if (subject.unreachable_address.empty()) return;
  TransportWorld world(subject, 2, {.connect_timeout = 400ms}, false);
  world.set_address(1, subject.unreachable_address);
  world.connect(0);
  if (world.at(0).descriptor() < 0) return;
  Parcel parcel(10);
  const Stopwatch watch;
  const std::string why = Sleeper(world.at(0))
                              .run({.kind = TransportOp::Kind::recv,
                                    .channel = world.channel(0, 1, 0),
                                    .first = parcel.first()});
  INFO(why);
  REQUIRE(watch.elapsed() < soon / 2);
  REQUIRE(why.find("rank 1") != std::string::npos);
}

}  // namespace hocket::testing
