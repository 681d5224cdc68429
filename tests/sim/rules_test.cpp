#include <chrono>

#include "base/rng.hpp"
#include "sim/ranks.hpp"

using namespace hocket;
using namespace hocket::testing;
using Catch::Matchers::Contains;

TEST_CASE("who writes to the memory of a send in flight is found out") {
  for (const SimProfile& profile : {SimProfile{.buffer_bytes = 0},
                                    SimProfile{.buffer_bytes = UINT64_MAX, .buffer_chance = 1}}) {
    Ranks ranks({.profile = profile});
    const auto [a, b] = ranks.open(0, 1, 7);
    Bytes sent = message(1, 30);
    Bytes received(30);
    ranks.post(1, receive_of(b, received));
    ranks.post(0, send_of(a, sent));
    sent[29] ^= std::byte{1};
    ranks.next(0);
    CHECK_THAT(ranks.world.violation(),
               Contains("rank 0 writes to the memory of send #0 (30 bytes; peer 1, lane 7)"));
    CHECK_THAT(ranks.world.story(),
               Contains("seed 0 (") && Contains("rank 0 writes to the memory"));
  }
}

TEST_CASE(
    "who writes to the memory of a receive in flight is found out, be it behind its message") {
  Ranks ranks({});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent = message(1, 30);
  Bytes received(31);
  ranks.post(1, receive_of(b, received));
  ranks.post(0, send_of(a, sent));
  ranks.run();
  received[30] ^= std::byte{1};
  ranks.next(1);
  CHECK_THAT(ranks.world.violation(), Contains("rank 1 writes to the memory of receive #0"));
}

TEST_CASE("two ops that share memory, one of which writes, are found out") {
  Ranks ranks({});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes memory = message(1, 30);
  ranks.post(0, send_of(a, memory));
  ranks.post(0, receive_of(a, memory));
  Bytes received(30);
  ranks.post(1, receive_of(b, received));
  ranks.next(0);
  CHECK_FALSE(ranks.world.violation().empty());
}

TEST_CASE("who reads the memory of a receive too early, or a loan too late, reads noise") {
  Ranks ranks({});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes received(64);
  ranks.post(1, receive_of(b, received));
  CHECK(received != Bytes(64));
}

TEST_CASE("a loan is given back once, and nothing else is") {
  for (const bool is_twice : {true, false}) {
    Ranks ranks({.profile = {.lend_chance = 1}});
    const auto [a, b] = ranks.open(0, 1, 0);
    Bytes sent(8);
    Bytes received(8);
    TransportOp receive = receive_of(b, received);
    receive.may_lend = true;
    ranks.post(1, receive);
    ranks.post(0, send_of(a, sent));
    const std::byte* const lent = ranks.next(1).lent;
    REQUIRE(lent != nullptr);
    if (is_twice) ranks.transports[1]->give_back(lent);
    CHECK(ranks.world.violation().empty());
    ranks.transports[1]->give_back(is_twice ? lent : lent + 1);
    CHECK_THAT(ranks.world.violation(), Contains("gives back what it was not lent"));
  }
}

TEST_CASE("ops need a channel and memory") {
  Bytes memory(8);
  Ranks ranks({.size = 3});
  TransportOp op = send_of(0, memory);
  CHECK(ranks.transports[0]->post({&op, 1}) == 0);
  CHECK_THAT(ranks.world.violation(), Contains("channel 0, which it has not opened"));

  Ranks others({});
  op = {.channel = others.open(0, 1, 0).a, .rest = {nullptr, 3}};
  CHECK(others.transports[0]->post({&op, 1}) == 0);
  CHECK_THAT(others.world.violation(), Contains("without memory"));
}

TEST_CASE("a world is connected to once, and a lane opened once") {
  Ranks ranks({});
  ranks.open(0, 1, 4);
  CHECK(ranks.transports[0]->open(1, 4).status().code() == StatusCode::invalid_argument);
  CHECK(ranks.transports[0]->open(2, 4).status().code() == StatusCode::invalid_argument);
  const std::vector<std::string> addresses = {"sim:0", "sim:1", ""};
  CHECK(ranks.transports[0]->connect(addresses).code() == StatusCode::invalid_argument);
}

TEST_CASE("whoever gave no address can't be reached, and addresses are those of the world") {
  SimWorld world({});
  const auto transport = world.transport(0);
  CHECK_FALSE(transport->open(1, 0).ok());
  const std::vector<std::string> too_few = {"sim:0"};
  const std::vector<std::string> wrong = {"sim:1", "sim:0"};
  const std::vector<std::string> alone = {"sim:0", ""};
  CHECK_FALSE(transport->connect(too_few).ok());
  CHECK_FALSE(transport->connect(wrong).ok());
  REQUIRE(transport->connect(alone).ok());
  CHECK(transport->can_reach(0).ok());
  CHECK(transport->can_reach(1).code() == StatusCode::unsupported);
  CHECK(transport->can_reach(1).peer() == 1);
  CHECK_FALSE(transport->open(1, 0).ok());
}

TEST_CASE("an alarm is an event, and time stands still but for events") {
  SimWorld world({});
  const Instant begin = world.clock().now();
  CHECK_FALSE(world.step());
  world.alarm(begin + std::chrono::hours(1));
  world.alarm(begin - std::chrono::hours(1));  // at once
  CHECK(world.step());
  CHECK(world.clock().now() == begin);
  CHECK(world.step());
  CHECK(world.clock().now() == begin + std::chrono::hours(1));
  CHECK_FALSE(world.step());
}
