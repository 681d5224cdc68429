#include <chrono>
#include <optional>

#include "base/rng.hpp"
#include "sim/ranks.hpp"

using namespace hocket;
using namespace hocket::testing;
using namespace std::chrono_literals;

namespace {

/// A failure of that rank with that peer.
void check_end(const TransportCompletion& done, StatusCode code, int rank, int peer) {
  CHECK(done.status.code() == code);
  CHECK(done.status.rank() == rank);
  CHECK(done.status.peer() == peer);
}
void check_lost(const TransportCompletion& done, int rank, int peer) {
  check_end(done, StatusCode::peer_lost, rank, peer);
}

constexpr SimProfile unbuffered = {.buffer_bytes = 0};
constexpr SimProfile buffered = {.buffer_bytes = UINT64_MAX, .buffer_chance = 1};

}  // namespace

TEST_CASE("peers of a dead rank learn of it after the time of detection, and others don't mind") {
  SimProfile profile = unbuffered;
  profile.detection = {3ms, 3ms};
  Ranks ranks({.size = 3, .profile = profile});
  const auto [a, b] = ranks.open(0, 1, 0);
  const auto [c, d] = ranks.open(0, 2, 0);
  Bytes sent(10);
  Bytes received(10);
  Bytes other(10);
  ranks.post(0, send_of(a, sent, 1));
  ranks.post(0, receive_of(a, received, 2));
  ranks.world.kill(1);
  CHECK_FALSE(ranks.world.is_alive(1));
  check_lost(ranks.next(0), 0, 1);
  CHECK(ranks.world.clock().now().time_since_epoch() == 3ms);
  check_lost(ranks.next(0), 0, 1);
  ranks.post(0, send_of(a, sent, 3));  // and so fails every later one
  check_lost(ranks.next(0), 0, 1);
  check_lost((ranks.post(0, send_of(ranks.transports[0]->open(1, 9).value(), sent)), ranks.next(0)),
             0, 1);
  ranks.post(0, send_of(c, sent));
  ranks.post(2, receive_of(d, other));
  CHECK(ranks.next(2).status.ok());
}

TEST_CASE("a dead rank does nothing, and its memory is left alone") {
  Ranks ranks({.profile = {.buffer_bytes = 0, .pieces_max = 8}});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent = message(1, 1000);
  std::optional<Bytes> received(1000);
  ranks.post(0, send_of(a, sent));
  ranks.post(1, receive_of(b, *received));
  ranks.require_step();
  ranks.world.kill(1);
  received.reset();
  const TransportOp again = send_of(b, sent);
  CHECK(ranks.transports[1]->post({&again, 1}) == 0);
  check_lost(ranks.next(0), 0, 1);
  ranks.run();
  CHECK(ranks.poll(1).empty());
}

TEST_CASE("a message half of which came from a rank that died is lost") {
  Ranks ranks({.profile = {.buffer_bytes = 0, .pieces_max = 8}});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent = message(1, 1000);
  Bytes received(1000);
  ranks.post(0, send_of(a, sent));
  ranks.post(1, receive_of(b, received));
  ranks.require_step();
  ranks.world.kill(0);
  sent = {};
  check_lost(ranks.next(1), 1, 0);
  CHECK(ranks.poll(1).empty());
}

TEST_CASE("what a dead rank has buffered arrives or not; what one that left has buffered arrives") {
  for (const bool is_killed : {true, false}) {
    int arrived = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Ranks ranks({.seed = seed, .profile = buffered});
      const auto [a, b] = ranks.open(0, 1, 0);
      Bytes sent = message(seed, 100);
      Bytes received(100);
      ranks.post(0, send_of(a, sent));
      REQUIRE(ranks.next(0).status.ok());
      if (is_killed) ranks.world.kill(0);
      ranks.transports[0].reset();
      ranks.run();  // the other hears of it
      ranks.post(1, receive_of(b, received));
      const TransportCompletion done = ranks.next(1);
      arrived += done.status.ok() ? 1 : 0;
      CHECK((received == sent) == done.status.ok());
      if (!done.status.ok()) check_lost(done, 1, 0);
      ranks.post(1, receive_of(b, received));
      check_lost(ranks.next(1), 1, 0);
    }
    if (is_killed) CHECK((arrived > 5 && arrived < 35));
    if (!is_killed) CHECK(arrived == 40);
  }
}

TEST_CASE("whoever has all its completions may leave") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Ranks ranks({.seed = seed, .profile = wild_profile(seed)});
    const auto [a, b] = ranks.open(0, 1, 0);
    Bytes sent = message(seed, 100);
    Bytes received(100);
    ranks.post(0, send_of(a, sent));
    ranks.post(1, receive_of(b, received));
    const std::uint32_t first = seed % 2;
    INFO(ranks.world.story());
    CHECK(ranks.next(first).status.ok());
    ranks.transports[first].reset();
    CHECK(ranks.next(1 - first).status.ok());
    CHECK(received == sent);
  }
}

TEST_CASE("nothing passes a broken link, and both ends learn of it") {
  Ranks ranks({.size = 3, .profile = buffered});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent = message(1, 100);
  Bytes received(100);
  ranks.post(0, send_of(a, sent));
  REQUIRE(ranks.next(0).status.ok());
  ranks.world.cut(1, 0);
  ranks.post(1, receive_of(b, received));
  check_lost(ranks.next(1), 1, 0);
  CHECK(received != sent);
  ranks.run();
  ranks.post(0, send_of(a, sent));
  check_lost(ranks.next(0), 0, 1);
  const auto [c, d] = ranks.open(0, 2, 0);
  const auto [e, f] = ranks.open(1, 2, 0);
  for (const auto& [rank, from, to] : {std::tuple(0u, c, d), std::tuple(1u, e, f)}) {
    ranks.post(rank, send_of(from, sent));
    ranks.post(2, receive_of(to, received));
    CHECK(ranks.next(2).status.ok());
  }
}

TEST_CASE("a stalled rank gets nothing for a while") {
  Ranks ranks({.profile = buffered});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent(10);
  Bytes received(10);
  ranks.world.stall(1, 5s);
  ranks.post(0, send_of(a, sent));
  ranks.post(1, receive_of(b, received));
  CHECK(ranks.next(0).status.ok());
  CHECK(ranks.world.clock().now().time_since_epoch() < 1s);
  CHECK(ranks.next(1).status.ok());
  CHECK(ranks.world.clock().now().time_since_epoch() == 5s);

  ranks.world.stall(1, 5s);
  ranks.post(1, send_of(b, sent));
  ranks.post(0, receive_of(a, received));
  CHECK(ranks.next(0).status.ok());
  CHECK(ranks.world.clock().now().time_since_epoch() >= 10s);
}

TEST_CASE("a channel that stalls holds up no other") {
  SimProfile profile = unbuffered;
  profile.channel_stall_chance = 0.5;
  profile.channel_stall = {1s, 1s};
  Ranks ranks({.profile = profile});
  std::vector<Bytes> sent(20, Bytes(8));
  std::vector<Bytes> received(20, Bytes(8));
  for (std::uint64_t lane = 0; lane < 20; ++lane) {
    const auto [a, b] = ranks.open(0, 1, lane);
    ranks.post(0, send_of(a, sent[lane]));
    ranks.post(1, receive_of(b, received[lane]));
  }
  int at_once = 0;
  for (int i = 0; i < 20; ++i) {
    CHECK(ranks.next(1).status.ok());
    at_once += ranks.world.clock().now().time_since_epoch() < 1s ? 1 : 0;
  }
  CHECK((at_once > 2 && at_once < 18));
}

TEST_CASE("an end that is closed fails its ops for the reason given, and so does the other") {
  Ranks ranks({.profile = unbuffered});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent(10);
  Bytes received(10);
  ranks.post(0, send_of(a, sent, 1));
  ranks.post(0, receive_of(a, received, 2));
  Bytes received_1(10);
  ranks.post(1, receive_of(b, received_1, 3));
  ranks.transports[0]->close(a, Status(StatusCode::aborted, "enough"));
  for (int i = 0; i < 2; ++i) CHECK(ranks.next(0).status.what() == "enough");
  ranks.post(0, send_of(a, sent, 4));
  CHECK(ranks.next(0).status.code() == StatusCode::aborted);
  check_end(ranks.next(1), StatusCode::aborted, 1, 0);
  CHECK(ranks.world.violation().empty());
}

TEST_CASE("what is on its way when its channel is closed arrives") {
  Ranks ranks({.profile = buffered});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent = message(1, 10);
  Bytes received(10);
  ranks.post(0, send_of(a, sent));
  REQUIRE(ranks.next(0).status.ok());
  ranks.transports[0]->close(a, Status(StatusCode::aborted, "enough"));
  ranks.run();
  ranks.post(1, receive_of(b, received));
  CHECK(ranks.next(1).status.ok());
  CHECK(received == sent);
  ranks.post(1, receive_of(b, received));
  check_end(ranks.next(1), StatusCode::aborted, 1, 0);
}

TEST_CASE("a message that is too long is a mismatch, and the end of its channel") {
  for (const SimProfile& profile : {unbuffered, buffered}) {
    Ranks ranks({.profile = profile});
    const auto [a, b] = ranks.open(0, 1, 0);
    Bytes sent(11);
    Bytes received(10);
    ranks.post(0, send_of(a, sent));
    ranks.post(1, receive_of(b, received));
    const TransportCompletion done = ranks.next(1);
    CHECK(done.status.code() == StatusCode::mismatch);
    CHECK(done.status.peer() == 0);
    ranks.post(1, receive_of(b, received));
    CHECK_FALSE(ranks.next(1).status.ok());
    ranks.run();
    ranks.post(0, send_of(a, sent));
    while (true) {
      const TransportCompletion at_0 = ranks.next(0);
      if (at_0.status.ok()) continue;  // the one that was too long
      check_end(at_0, StatusCode::mismatch, 0, 1);
      break;
    }
  }
}

TEST_CASE("ranks die and links break by themselves where the profile says so") {
  int dead = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Ranks ranks(
        {.seed = seed, .profile = {.death_chance = 0.5, .fault_ops = 5, .fault_time = 1us}});
    const auto [a, b] = ranks.open(0, 1, 0);
    Bytes memory(1);
    for (int i = 0; i < 5; ++i) {
      const TransportOp send = send_of(a, memory);
      if (ranks.transports[0]->post({&send, 1}) == 0) break;
      const TransportOp receive = receive_of(b, memory);
      if (ranks.transports[1]->post({&receive, 1}) == 0) break;
    }
    do {
      ranks.poll(0);
      ranks.poll(1);
    } while (ranks.world.step());
    for (const std::uint32_t rank : {0u, 1u}) dead += ranks.world.is_alive(rank) ? 0 : 1;
  }
  CHECK((dead > 35 && dead < 85));
}
