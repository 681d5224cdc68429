#include <algorithm>
#include <map>
#include <set>

#include "base/rng.hpp"
#include "sim/ranks.hpp"

using namespace hocket;
using namespace hocket::testing;

TEST_CASE("a message arrives, in the memory of its receive and no other") {
  for (const std::size_t bytes : {0u, 1u, 63u, 100'000u}) {
    Ranks ranks({.profile = {.pieces_max = 4}});
    const auto [a, b] = ranks.open(0, 1, 7);
    Bytes sent = message(bytes, bytes);
    Bytes received(bytes + 10);
    Bytes beside(16);
    TransportOp receive = receive_of(b, received, 5);
    receive.first.bytes = bytes / 2;
    receive.rest = {received.data() + bytes / 2, bytes - bytes / 2};
    ranks.post(0, send_of(a, sent, 4));
    ranks.post(1, receive);
    const TransportCompletion at_0 = ranks.next(0);
    const TransportCompletion at_1 = ranks.next(1);
    INFO(ranks.world.story());
    CHECK((at_0.status.ok() && at_0.token == 4 && at_0.bytes == bytes));
    CHECK((at_1.status.ok() && at_1.token == 5 && at_1.bytes == bytes && at_1.lent == nullptr));
    CHECK(std::equal(sent.begin(), sent.end(), received.begin()));
    CHECK(Bytes(received.end() - 10, received.end()) == Bytes(10));
    CHECK(ranks.world.violation().empty());
    CHECK_FALSE(ranks.world.step());
  }
}

TEST_CASE("messages of a channel keep their order, and completions too") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Ranks ranks({.seed = seed, .profile = wild_profile(seed)});
    const auto [a, b] = ranks.open(0, 1, 0);
    constexpr std::uint64_t count = 30;
    std::vector<Bytes> sent;
    std::vector<Bytes> received(count, Bytes(100));
    for (std::uint64_t i = 0; i < count; ++i) sent.push_back(message(i, 1 + i % 100));
    std::uint64_t sends = 0;
    std::uint64_t receives = 0;
    std::uint64_t posted = 0;
    while (sends < count || receives < count) {
      if (posted < count) {
        ranks.post(0, send_of(a, sent[posted], posted));
        ranks.post(1, receive_of(b, received[posted], posted));
        ++posted;
      } else {
        ranks.require_step();
      }
      for (const auto& done : ranks.poll(0)) REQUIRE(done.token == sends++);
      for (const auto& done : ranks.poll(1)) {
        REQUIRE(done.token == receives++);
        const Bytes& expected = sent[done.token];
        REQUIRE(done.bytes == expected.size());
        REQUIRE(std::equal(expected.begin(), expected.end(), received[done.token].begin()));
      }
    }
  }
}

TEST_CASE("channels overtake each other") {
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Ranks ranks({.seed = seed});
    std::vector<Bytes> sent(3, Bytes(8));
    std::vector<Bytes> received(3, Bytes(8));
    for (std::uint64_t lane = 0; lane < 3; ++lane) {
      const auto [a, b] = ranks.open(0, 1, lane);
      ranks.post(0, send_of(a, sent[lane], lane));
      ranks.post(1, receive_of(b, received[lane], lane));
    }
    std::vector<std::uint64_t> order;
    for (int i = 0; i < 3; ++i) order.push_back(ranks.next(1).token);
    orders.insert(order);
  }
  CHECK(orders.size() == 6);
}

TEST_CASE("without buffers a send waits for its receive, with them it does not") {
  for (const bool has_buffer : {false, true}) {
    Ranks ranks({.profile = {.buffer_bytes = has_buffer ? UINT64_MAX : 0, .buffer_chance = 1}});
    const auto [a, b] = ranks.open(0, 1, 0);
    Bytes sent = message(1, 1000);
    Bytes received(1000);
    ranks.post(0, send_of(a, sent));
    ranks.run();
    CHECK(ranks.poll(0).size() == (has_buffer ? 1 : 0));
    ranks.post(1, receive_of(b, received));
    CHECK(ranks.next(1).status.ok());
    CHECK(received == sent);
    ranks.run();
    CHECK(ranks.poll(0).size() == (has_buffer ? 0 : 1));
  }
}

TEST_CASE("buffers have an end") {
  Ranks ranks({.profile = {.buffer_bytes = 100, .buffer_chance = 1}});
  const auto [a, b] = ranks.open(0, 1, 0);
  std::vector<Bytes> sent(5, Bytes(40));
  Bytes received(40);
  for (Bytes& each : sent) ranks.post(0, send_of(a, each));
  ranks.run();
  CHECK(ranks.poll(0).size() == 2);
  for (int i = 0; i < 5; ++i) {
    ranks.post(1, receive_of(b, received));
    CHECK(ranks.next(1).status.ok());
  }
  ranks.run();
  CHECK(ranks.poll(0).size() == 3);
}

TEST_CASE("a message is written in pieces, before its completion") {
  Ranks ranks({.profile = {.buffer_bytes = 0, .pieces_max = 8, .is_watching = false}});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent(1000, std::byte{1});
  Bytes received(1000);
  ranks.post(0, send_of(a, sent));
  ranks.post(1, receive_of(b, received));
  std::set<std::ptrdiff_t> seen;
  while (ranks.world.step()) seen.insert(std::ranges::count(received, std::byte{1}));
  CHECK(seen.size() > 3);
  CHECK(*seen.rbegin() == 1000);
}

TEST_CASE("a receive that allows it is lent its message") {
  Ranks ranks({.profile = {.lend_chance = 1, .loans_max = 1}});
  const auto [a, b] = ranks.open(0, 1, 0);
  Bytes sent = message(1, 50);
  Bytes received(60);
  TransportOp receive = receive_of(b, received);
  receive.may_lend = true;
  std::vector<TransportCompletion> done;
  for (int i = 0; i < 2; ++i) {
    ranks.post(0, send_of(a, sent));
    ranks.post(1, receive);
    done.push_back(ranks.next(1));
    REQUIRE(done.back().bytes == 50);
  }
  REQUIRE(done[0].lent != nullptr);
  CHECK(std::equal(sent.begin(), sent.end(), done[0].lent));
  CHECK(done[1].lent == nullptr);  // no more than one
  CHECK(std::equal(sent.begin(), sent.end(), received.begin()));
  CHECK(ranks.world.loans(1) == 1);
  ranks.transports[1]->give_back(done[0].lent);
  CHECK(ranks.world.loans(1) == 0);
  CHECK_FALSE(std::equal(sent.begin(), sent.end(), done[0].lent));  // filled with noise
  CHECK(ranks.world.violation().empty());
}

TEST_CASE("a message waits for an end that is not open yet, and one may talk to oneself") {
  Ranks ranks({.size = 2, .seed = 3});
  Bytes sent = message(1, 20);
  Bytes received(20);
  for (const std::uint32_t peer : {1u, 0u}) {
    const ChannelId from = ranks.transports[0]->open(peer, 5).value();
    ranks.post(0, send_of(from, sent, 1));
    ranks.run();
    ranks.poll(0);
    const ChannelId to = peer == 0 ? from : ranks.transports[peer]->open(0, 5).value();
    ranks.post(peer, receive_of(to, received, 2));
    ranks.run();
    const auto done = ranks.poll(peer);
    REQUIRE(std::ranges::count(done, 2u, &TransportCompletion::token) == 1);
    CHECK(received == sent);
    std::ranges::fill(received, std::byte{0});
  }
}

TEST_CASE("post refuses some of many ops, but not for ever, and poll holds back") {
  Ranks ranks({.profile = {.refuse_chance = 1, .hold_chance = 0.5}});
  const auto [a, b] = ranks.open(0, 1, 0);
  std::vector<Bytes> memory(20, Bytes(4));
  std::vector<TransportOp> receives;
  for (Bytes& each : memory) receives.push_back(receive_of(b, each));
  std::span<const TransportOp> left = receives;
  int tries = 0;
  for (; !left.empty(); ++tries) {
    const std::size_t taken = ranks.transports[1]->post(left);
    REQUIRE((tries > 0 || (taken > 0 && taken < left.size())));  // one with nothing in flight
    left = left.subspan(taken);
    if (!left.empty() && taken == 0) ranks.require_step();
  }
  CHECK(tries > 2);
  Bytes sent(4);
  for (int i = 0; i < 20; ++i) ranks.post(0, send_of(a, sent));
  std::size_t polls = 0;
  for (std::size_t got = 0; got < 20;) {
    const std::size_t now = ranks.poll(1).size();
    got += now;
    if (now > 0) ++polls;
    if (now == 0) {
      CHECK(ranks.transports[1]->prepare_to_sleep());
      ranks.require_step();
    }
  }
  CHECK(polls > 1);
}
