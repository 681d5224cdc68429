// Messages: their order, their boundaries, their sizes, and where they come to lie.
#include <cstdint>
#include <deque>
#include <vector>

#include "conformance/transport_conformance.hpp"
#include "conformance/transport_world.hpp"

namespace hocket::testing {
namespace {

/// A message from rank 0 to rank 1, in these parcels.
void require_arrival(TransportWorld& world, Parcel& from, Parcel& to, std::uint64_t seed) {
  from.fill(seed);
  to.poison();
  const Token sent = world.send(0, 1, 0, from);
  const Token received = world.receive(1, 0, 0, to, seed % 2 == 1);
  world.require_success(sent);
  world.require_success(received);
  REQUIRE(world.outcome(sent).bytes == from.bytes());
  REQUIRE(world.outcome(received).bytes == from.bytes());
  REQUIRE(to.holds(seed, from.bytes()));
}

}  // namespace

TRANSPORT_TEST("messages keep order and boundaries on each lane") {
  TransportWorld world(subject, 3);
  std::deque<Parcel> sent;
  std::deque<Parcel> received;
  std::vector<Token> receives;
  std::uint64_t seed = 0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    for (std::uint32_t from = 0; from < 3; ++from) {
      for (std::uint32_t to = 0; to < 3; ++to) {
        if (from == to) continue;
        for (const std::uint64_t lane : {0ULL, 7ULL, ~0ULL}) {
          sent.emplace_back(i * 13 % 97).fill(seed++);
          received.emplace_back(i * 13 % 97);
          world.send(from, to, lane, sent.back());
          receives.push_back(world.receive(to, from, lane, received.back()));
        }
      }
    }
  }
  world.finish();
  for (std::size_t i = 0; i < receives.size(); ++i) {
    CAPTURE(i);
    require(world.outcome(receives[i]).status);
    REQUIRE(world.outcome(receives[i]).bytes == sent[i].bytes());
    REQUIRE(received[i].holds(i));
  }
}

TRANSPORT_TEST("messages of every size arrive") {
  TransportWorld world(subject, 2);
  std::uint64_t seed = 0;
  const std::uint64_t sizes[] = {0,
                                 1,
                                 2,
                                 3,
                                 8,
                                 15,
                                 16,
                                 17,
                                 333,
                                 4095,
                                 4096,
                                 4097,
                                 16'385,
                                 65'535,
                                 65'537,
                                 262'144,
                                 (1 << 20) + 3,
                                 (5 << 20) + 1};
  for (const std::uint64_t bytes : sizes) {
    CAPTURE(bytes);
    for (const std::uint64_t split : {bytes, bytes / 2, std::uint64_t{0}, bytes - bytes / 7}) {
      Parcel from(bytes, split);
      Parcel to(bytes);
      require_arrival(world, from, to, ++seed);
      Parcel in_parts(bytes, split);
      Parcel whole(bytes);
      require_arrival(world, whole, in_parts, ++seed);
    }
  }
}

TRANSPORT_TEST("both sides may cut a message where they like") {
  TransportWorld world(subject, 2);
  std::uint64_t seed = 0;
  for (const std::uint64_t bytes : {0U, 1U, 2U, 5U, 40U}) {
    for (std::uint64_t cut = 0; cut <= bytes; ++cut) {
      for (std::uint64_t other_cut = 0; other_cut <= bytes; other_cut += 1 + bytes / 6) {
        Parcel from(bytes, cut);
        Parcel to(bytes, other_cut);
        require_arrival(world, from, to, ++seed);
      }
    }
  }
}

TRANSPORT_TEST("a message may be shorter than its receive") {
  TransportWorld world(subject, 2);
  const std::uint64_t rooms[] = {1, 100, 5000, 70'000, (1 << 20) + 3};
  std::deque<Parcel> sent;
  std::deque<Parcel> received;
  std::vector<Token> receives;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const std::uint64_t room = rooms[i * i % 5];
    const std::uint64_t bytes = i % 7 == 0 ? room : room * (i * 31 % 100) / 400;
    sent.emplace_back(bytes, bytes / 3).fill(i);
    received.emplace_back(room, room / (1 + i % 4));
    world.send(0, 1, 0, sent.back());
    receives.push_back(world.receive(1, 0, 0, received.back(), i % 3 == 0));
    if (i % 50 == 49) world.finish();
  }
  world.finish();
  for (std::size_t i = 0; i < receives.size(); ++i) {
    CAPTURE(i);
    require(world.outcome(receives[i]).status);
    REQUIRE(world.outcome(receives[i]).bytes == sent[i].bytes());
    REQUIRE(received[i].holds(i, sent[i].bytes()));
  }
}

TRANSPORT_TEST("a message longer than its receive breaks its channel and no other") {
  TransportWorld world(subject, 2);
  for (const std::uint64_t bytes : {1U, 30U, 100'000U}) {
    Parcel fine(20);
    Parcel room(20);
    Parcel long_one(bytes);
    Parcel short_room(bytes - 1);
    Parcel later(bytes);
    long_one.fill(1);
    fine.fill(2);
    world.send(0, 1, bytes, long_one);
    const Token received = world.receive(1, 0, bytes, short_room);
    const Token behind = world.receive(1, 0, bytes, later);
    world.require_failure(received, StatusCode::mismatch);
    REQUIRE(world.outcome(received).status.peer() == 0);
    REQUIRE(short_room.has_guards());
    world.finish(behind);
    REQUIRE_FALSE(world.outcome(behind).status.ok());
    const Token posted_later = world.send(1, 0, bytes, fine);
    world.finish(posted_later);
    REQUIRE_FALSE(world.outcome(posted_later).status.ok());

    world.send(0, 1, 0, fine);
    world.require_success(world.receive(1, 0, 0, room));
    REQUIRE(room.holds(2));
  }
}

TRANSPORT_TEST("whoever comes first, the receive or the send, the other is met") {
  const int rounds[] = {0, 1, 40};
  for (const int wait : rounds) {
    for (const std::uint32_t sender : {0U, 1U}) {
      for (const bool sends_first : {true, false}) {
        CAPTURE(wait, sender, sends_first);
        TransportWorld world(subject, 2);
        Parcel from(1000);
        Parcel to(1000);
        from.fill(9);
        if (sends_first) world.send(sender, 1 - sender, 5, from);
        if (!sends_first) world.receive(1 - sender, sender, 5, to);
        world.pump_rounds(wait);
        if (!sends_first) world.send(sender, 1 - sender, 5, from);
        if (sends_first) world.receive(1 - sender, sender, 5, to);
        world.finish();
        REQUIRE(to.holds(9));
      }
    }
  }
}

TRANSPORT_TEST("a peer that is not connected yet gets its messages later") {
  for (const std::uint32_t early : {0U, 1U}) {
    const std::uint32_t late = 1 - early;
    TransportWorld world(subject, 2, {}, false);
    world.connect(early);
    Parcel from(3000);
    Parcel to(3000);
    Parcel back(10);
    Parcel back_room(10);
    from.fill(1);
    back.fill(2);
    world.send(early, late, 0, from);
    world.receive(early, late, 0, back_room);
    world.pump_rounds(50);
    world.connect(late);
    world.pump_rounds(50);
    world.receive(late, early, 0, to);
    world.send(late, early, 0, back);
    world.finish();
    REQUIRE(to.holds(1));
    REQUIRE(back_room.holds(2));
  }
}

TRANSPORT_TEST("both ends begin at once") {
  for (int i = 0; i < 20; ++i) {
    TransportWorld world(subject, 2);
    std::deque<Parcel> parcels;
    for (const std::uint32_t rank : {0U, 1U}) {
      for (std::uint64_t lane = 0; lane < 4; ++lane) {
        parcels.emplace_back(64).fill(lane);
        world.send(rank, 1 - rank, lane, parcels.back());
        world.receive(rank, 1 - rank, lane, parcels.emplace_back(64));
      }
    }
    world.finish();
    for (std::size_t k = 1; k < parcels.size(); k += 2) REQUIRE(parcels[k].holds(k / 2 % 4));
  }
}

TRANSPORT_TEST("ranks that can't be there can't be reached") {
  TransportWorld world(subject, 2);
  require(world.at(0).can_reach(1));
  const Status status = world.at(0).can_reach(2);
  INFO(status.to_string());
  REQUIRE_FALSE(status.ok());
  REQUIRE_FALSE(world.at(0).open(2, 0).ok());
  REQUIRE(world.at(0).caps().segment_bytes > 0);
  world.channel(0, 1, 3);
  REQUIRE_FALSE(world.at(0).open(1, 3).ok());
}

TRANSPORT_TEST("a rank without this transport can't be reached") {
  TransportWorld world(subject, 3, {}, false);
  world.set_address(1, "");
  world.connect(0);
  world.connect(2);
  REQUIRE_FALSE(world.at(0).can_reach(1).ok());
  REQUIRE_FALSE(world.at(0).open(1, 0).ok());
  Parcel from(1);
  Parcel to(1);
  from.fill(1);
  world.send(2, 0, 0, from);
  world.receive(0, 2, 0, to);
  world.finish();
  REQUIRE(to.holds(1));
}

}  // namespace hocket::testing
