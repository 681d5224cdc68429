// Peers that die, channels that are closed, addresses where nobody is: each op ends once, with the
// reason, and its memory is left alone from then on.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "conformance/transport_conformance.hpp"
#include "conformance/transport_world.hpp"
#include "support/child.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t large = (6 << 20) + 1;  // more than the buffers between two ranks hold

void require_lost(const TransportWorld& world, Token token, int peer) {
  const Status& status = world.outcome(token).status;
  INFO(status.to_string());
  REQUIRE(status.code() == StatusCode::peer_lost);
  REQUIRE(status.peer() == peer);
  REQUIRE(status.what().find(fmt::format("rank {}", peer)) != std::string_view::npos);
}

/// A pipe for an address.
struct Pipe {
  Pipe() { REQUIRE(pipe(ends) == 0); }
  ~Pipe() {
    close(ends[0]);
    close(ends[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  void write(std::string text) const {
    text.resize(256);
    static_cast<void>(!::write(ends[1], text.data(), text.size()));
  }
  [[nodiscard]] std::string read() const {
    std::string text(256, '\0');
    std::size_t count = 0;
    while (count < text.size()) {
      const ssize_t more = ::read(ends[0], text.data() + count, text.size() - count);
      if (more <= 0) return {};
      count += static_cast<std::size_t>(more);
    }
    return text.substr(0, text.find('\0'));
  }

  int ends[2] = {};
};

/// A rank that sends without end, and receives as much; until it is killed.
bool talk_for_ever(const TransportSubject& subject, const Pipe& to_us, const Pipe& to_parent) {
  const auto net = subject.make_net();
  const auto transport = net->make({.rank = 1, .size = 2});
  to_parent.write(transport->address());
  const std::string addresses[] = {to_us.read(), transport->address()};
  if (!transport->connect(addresses).ok()) return false;
  const auto channel = transport->open(0, 0);
  Parcel sent(50'000);
  Parcel received(50'000);
  sent.fill(1);
  const TransportOp send = {.channel = *channel, .first = sent.first()};
  const TransportOp receive = {
      .kind = TransportOp::Kind::recv, .channel = *channel, .first = received.first()};
  TransportOp ops[] = {send, receive};
  for (;;) {
    static_cast<void>(transport->post(ops));
    for (std::size_t over = 0; over < 2;) {
      TransportCompletion completions[4];
      over += transport->poll(completions);
      for (const TransportCompletion& each : completions) {
        if (!each.status.ok()) return false;
      }
    }
  }
}

}  // namespace

TRANSPORT_TEST("a peer's death ends every op with it, wherever it was") {
  for (int rounds = 0; rounds < 60; rounds = rounds * 3 / 2 + 1) {
    CAPTURE(rounds);
    TransportWorld world(subject, 3);
    std::deque<Parcel> parcels;
    std::vector<Token> ours;
    for (std::uint64_t lane = 0; lane < 3; ++lane) {
      for (const std::uint64_t bytes : {std::uint64_t{10}, large}) {
        parcels.emplace_back(bytes).fill(lane);
        if (lane != 1) ours.push_back(world.send(0, 1, lane, parcels.back()));
        ours.push_back(world.receive(0, 1, lane, parcels.emplace_back(bytes)));
        world.receive(1, 0, lane, parcels.emplace_back(bytes));
        parcels.emplace_back(bytes).fill(lane);
        if (lane != 2) world.send(1, 0, lane, parcels.back());
      }
      ours.push_back(world.receive(0, 1, lane, parcels.emplace_back(1)));
    }
    world.pump_rounds(rounds);
    world.end(1);
    world.finish();
    std::size_t lost = 0;
    for (const Token token : ours) {
      if (world.outcome(token).status.ok()) continue;
      require_lost(world, token, 1);
      ++lost;
    }
    REQUIRE(lost >= 3);
    for (std::uint64_t lane = 0; lane < 3; ++lane) {
      for (const Token later :
           {world.send(0, 1, lane, parcels.front()), world.receive(0, 1, lane, parcels.back())}) {
        world.finish(later);
        require_lost(world, later, 1);
      }
    }
    Parcel from(5);
    Parcel to(5);
    from.fill(1);
    world.send(2, 0, 0, from);
    world.require_success(world.receive(0, 2, 0, to));
  }
}

TRANSPORT_TEST("a peer that ends before it opened a channel is lost there as well") {
  for (const bool is_waiting : {true, false}) {
    for (const bool has_talked : {true, false}) {
      CAPTURE(is_waiting, has_talked);
      TransportWorld world(subject, 2, {.connect_timeout = 2s});
      Parcel from(5);
      Parcel to(5);
      if (has_talked) {
        world.send(1, 0, 0, from);
        world.require_success(world.receive(0, 1, 0, to));
      }
      Token received = 0;
      if (is_waiting) received = world.receive(0, 1, 9, to);
      world.pump_rounds(30);
      world.end(1);
      if (!is_waiting) received = world.receive(0, 1, 9, to);
      world.finish();
      const Status& status = world.outcome(received).status;
      INFO(status.to_string());
      REQUIRE((status.code() == StatusCode::timeout || status.code() == StatusCode::peer_lost));
      REQUIRE(status.peer() == 1);
    }
  }
}

TRANSPORT_TEST("messages that were complete before the peer's end are there") {
  if (!subject.sends_ahead) return;
  TransportWorld world(subject, 2);
  std::deque<Parcel> parcels;
  for (std::uint64_t i = 0; i < 4; ++i) {
    parcels.emplace_back(100 + i).fill(i);
    world.send(1, 0, 0, parcels.back());
  }
  Parcel room(103);
  const Token first = world.receive(0, 1, 0, room);
  world.finish();
  REQUIRE(room.holds(0, world.outcome(first).bytes));
  world.end(1);
  world.pump_rounds(50);
  for (std::uint64_t i = 1; i < 4; ++i) {
    const Token next = world.receive(0, 1, 0, room);
    world.require_success(next);
    REQUIRE(room.holds(i, 100 + i));
  }
  const Token none = world.receive(0, 1, 0, room);
  world.finish(none);
  require_lost(world, none, 1);
}

TRANSPORT_TEST("who looks first after the peer's end still gets what it had sent") {
  if (!subject.sends_ahead) return;
  for (const std::uint64_t bytes : {0U, 8U, 100U, 100'000U}) {
    CAPTURE(bytes);
    TransportWorld world(subject, 2);
    Parcel from(bytes);
    Parcel room(bytes);
    from.fill(1);
    const Token sent = world.send(1, 0, 7, from);
    world.pump_rounds(300);
    if (!world.outcome(sent).is_over) continue;  // it waits for the other end to be opened
    REQUIRE(world.outcome(sent).status.ok());
    world.end(1);
    const Token received = world.receive(0, 1, 7, room);
    world.require_success(received);
    REQUIRE(room.holds(1));
    const Token none = world.receive(0, 1, 7, room);
    world.finish(none);
    require_lost(world, none, 1);
  }
}

TRANSPORT_TEST("who is sending when the peer ends still gets what came before") {
  for (int i = 0; i < 5; ++i) {
    TransportWorld world(subject, 2);
    Parcel from(2000);
    Parcel unwanted(large);
    from.fill(1);
    // More than one read takes, and less than is kept of a rank that has ended.
    std::vector<Token> sends;
    for (int k = 0; k < 20; ++k) sends.push_back(world.send(1, 0, 0, from));
    std::deque<Parcel> rooms;
    const auto receive = [&] { return world.receive(0, 1, 0, rooms.emplace_back(2000)); };
    world.require_success(receive());
    const Token sent = world.send(0, 1, 0, unwanted);
    world.pump_rounds(10);
    const auto over =
        std::ranges::count_if(sends, [&](Token token) { return world.outcome(token).is_over; });
    world.end(1);
    std::vector<Token> rest;
    for (int k = 1; k < over; ++k) rest.push_back(receive());
    INFO(over);
    for (const Token token : rest) world.require_success(token);
    world.finish(sent);
    require_lost(world, sent, 1);
  }
}

TRANSPORT_TEST("a peer whose process is killed is lost at once") {
  if (!subject.crosses_processes) return;
  for (const Duration life : {0ms, 3ms, 20ms, 60ms}) {
    const Pipe to_child;
    const Pipe to_us;
    Child child([&] { return talk_for_ever(subject, to_child, to_us); });
    TransportWorld world(subject, 2, {}, false);
    world.end(1);
    world.set_address(1, to_us.read());
    to_child.write(world.at(0).address());
    world.connect(0);
    Parcel sent(50'000);
    Parcel received(50'000);
    const Deadline killing = Deadline::after(monotonic_clock(), life);
    bool is_killed = false;
    for (bool is_lost = false; !is_lost;) {
      const Token send = world.send(0, 1, 0, sent);
      const Token receive = world.receive(0, 1, 0, received);
      world.pump_until("an exchange", [&] {
        if (!is_killed && killing.passed(monotonic_clock().now())) {
          child.end();
          is_killed = true;
        }
        return world.outcome(send).is_over && world.outcome(receive).is_over;
      });
      is_lost = !world.outcome(receive).status.ok();
      if (is_lost) {
        REQUIRE(is_killed);
        require_lost(world, receive, 1);
      }
    }
  }
}

TRANSPORT_TEST("close ends what is under way, and leaves its memory alone") {
  for (int rounds = 0; rounds < 40; rounds = rounds * 2 + 1) {
    CAPTURE(rounds);
    TransportWorld world(subject, 2);
    std::deque<Parcel> ours;
    std::deque<Parcel> theirs;
    std::vector<Token> tokens;
    for (const std::uint64_t bytes : {std::uint64_t{10}, large, std::uint64_t{300}}) {
      for (std::deque<Parcel>* side : {&ours, &theirs}) {
        const std::uint32_t rank = side == &ours ? 0 : 1;
        side->emplace_back(bytes).fill(1);
        tokens.push_back(world.send(rank, 1 - rank, 0, side->back()));
        tokens.push_back(world.receive(rank, 1 - rank, 0, side->emplace_back(bytes)));
      }
    }
    Parcel other(large);
    Parcel other_room(large);
    other.fill(2);
    world.send(0, 1, 1, other);
    const Token other_received = world.receive(1, 0, 1, other_room);
    world.pump_rounds(rounds);
    world.close(0, 1, 0, Status(StatusCode::aborted, "told to stop"));
    for (const Token token : tokens) {
      if (world.outcome(token).rank == 0) world.finish(token);
    }
    for (Parcel& each : ours) each.poison();
    world.finish();
    for (Parcel& each : ours) REQUIRE(each.is_poisoned());
    for (const Token token : tokens) {
      const Outcome& outcome = world.outcome(token);
      if (outcome.status.ok()) continue;
      INFO(outcome.status.to_string());
      const bool is_told = outcome.rank == 0 || subject.tells_reason_in_mid_message;
      if (is_told || outcome.status.code() != StatusCode::peer_lost) {
        REQUIRE(outcome.status.code() == StatusCode::aborted);
      }
    }
    const Token later = world.send(0, 1, 0, ours.front());
    world.require_failure(later, StatusCode::aborted);
    world.require_success(other_received);
    REQUIRE(other_room.holds(2));
  }
}

TRANSPORT_TEST("who waits on a channel that the peer closes is told") {
  for (const std::uint32_t closer : {0U, 1U}) {
    for (const bool has_talked : {false, true}) {
      for (const bool closes_first : {false, true}) {
        CAPTURE(closer, has_talked, closes_first);
        TransportWorld world(subject, 2);
        Parcel from(9);
        Parcel to(9);
        from.fill(1);
        if (has_talked) {
          world.send(closer, 1 - closer, 0, from);
          world.require_success(world.receive(1 - closer, closer, 0, to));
        }
        if (closes_first) world.close(closer, 1 - closer, 0, Status(StatusCode::peer_lost, "done"));
        const Token waiting = world.receive(1 - closer, closer, 0, to);
        world.pump_rounds(30);
        if (!closes_first)
          world.close(closer, 1 - closer, 0, Status(StatusCode::peer_lost, "done"));
        world.finish(waiting);
        require_lost(world, waiting, static_cast<int>(closer));
        INFO(world.outcome(waiting).status.to_string());
        REQUIRE(world.outcome(waiting).status.what().find("closed") != std::string_view::npos);
      }
    }
  }
}

TRANSPORT_TEST("the reason for which a channel is closed reaches the other end") {
  struct Case {
    Status reason;
    StatusCode code;
    int peer;
  };
  const Case cases[] = {
      {Status(StatusCode::peer_lost, "gone").with_peer(2).with_step(7), StatusCode::peer_lost, 2},
      {Status(StatusCode::mismatch, "differs").with_peer(2), StatusCode::mismatch, 2},
      {Status(StatusCode::timeout, "late").with_peer(0), StatusCode::timeout, 0},
      {Status(StatusCode::limit_exceeded, "full"), StatusCode::limit_exceeded, 1},
      {Status(StatusCode::aborted, "done"), StatusCode::aborted, 1},
      {Status(StatusCode::internal, "a defect"), StatusCode::aborted, 1},
  };
  for (const Case& each : cases) {
    for (const bool by_lanes : {false, true}) {
      for (const bool is_waiting : {false, true}) {
        for (const bool was_open : {true, false}) {
          if (!was_open && !by_lanes) continue;  // it would be opened for that
          CAPTURE(each.reason.to_string(), by_lanes, is_waiting, was_open);
          TransportWorld world(subject, 3);
          Parcel from(9);
          Parcel to(9);
          from.fill(1);
          if (was_open) {
            for (const std::uint32_t rank : {0U, 1U}) {
              world.send(rank, 1 - rank, 300, from);
              world.require_success(world.receive(1 - rank, rank, 300, to));
            }
          }
          Token waiting = 0;
          if (is_waiting) waiting = world.receive(0, 1, 300, to);
          world.pump_rounds(30);
          if (by_lanes) {
            world.at(1).close_lanes(256, 511, each.reason);
          } else {
            world.close(1, 0, 300, each.reason);
          }
          if (!is_waiting) waiting = world.receive(0, 1, 300, to);
          world.finish(waiting);
          const Token later = world.send(0, 1, 300, from);
          world.finish(later);
          for (const Token token : {waiting, later}) {
            const Status& status = world.outcome(token).status;
            INFO(status.to_string());
            REQUIRE(status.code() == each.code);
            REQUIRE((token == later || world.outcome(token).tag == 0));
            REQUIRE(status.peer() == each.peer);
            REQUIRE(status.step() == each.reason.step());
            REQUIRE(status.what().find("rank 1") != std::string_view::npos);
          }
        }
      }
    }
  }
}

TRANSPORT_TEST("lanes that are over fail for whoever opens them, wherever they were open") {
  for (const bool is_waiting : {true, false}) {
    for (const bool was_open : {true, false}) {
      CAPTURE(is_waiting, was_open);
      TransportWorld world(subject, 2);
      Parcel from(9);
      Parcel to(9);
      from.fill(1);
      Token waiting = 0;
      if (was_open) {
        world.send(1, 0, 300, from);
        world.require_success(world.receive(0, 1, 300, to));
      }
      if (is_waiting) waiting = world.receive(0, 1, 300, to);
      world.pump_rounds(30);
      world.at(1).close_lanes(256, 511, Status(StatusCode::peer_lost, "done"));
      if (!is_waiting) waiting = world.receive(0, 1, 300, to);
      world.finish(waiting);
      require_lost(world, waiting, 1);
      // Its own ops as well, also on channels that it opens now, and those of the others later.
      for (const std::uint64_t lane : {256U, 300U, 511U}) {
        const Token ours = world.send(1, 0, lane, from);
        const Token theirs = world.receive(0, 1, lane, to);
        world.finish();
        REQUIRE_FALSE(world.outcome(ours).status.ok());
        require_lost(world, theirs, 1);
      }
      for (const std::uint64_t lane : {255U, 512U}) {
        world.send(1, 0, lane, from);
        world.require_success(world.receive(0, 1, lane, to));
      }
    }
  }
}

TRANSPORT_TEST("channels come and go, and late ops meet no other channel") {
  TransportWorld world(subject, 2);
  std::vector<std::uint64_t> lanes;
  for (std::uint64_t lane = 0; lane < 40; ++lane) {
    Parcel from(9);
    Parcel to(9);
    from.fill(lane);
    world.send(0, 1, lane, from);
    world.require_success(world.receive(1, 0, lane, to));
    REQUIRE(to.holds(lane));
    for (const std::uint32_t rank : {0U, 1U}) {
      world.close(rank, 1 - rank, lane, Status(StatusCode::peer_lost, "done"));
      world.at(rank).close_lanes(lane, lane, Status(StatusCode::peer_lost, "done"));
    }
    world.pump_rounds(5);
    lanes.push_back(lane);
    for (const std::uint64_t each : lanes) {
      const Token late = world.receive(1, 0, each, to);
      world.finish(late);
      REQUIRE_FALSE(world.outcome(late).status.ok());
    }
  }
}

TRANSPORT_TEST("what was sent before a close arrives") {
  if (!subject.sends_ahead) return;
  for (const bool by_lanes : {false, true}) {
    for (const bool is_first_contact : {false, true}) {
      CAPTURE(by_lanes, is_first_contact);
      TransportWorld world(subject, 2);
      std::deque<Parcel> parcels;
      Token last = 0;
      for (std::uint64_t i = 0; i < 5; ++i) {
        parcels.emplace_back(1000).fill(i);
        last = world.send(0, 1, 0, parcels.back());
        if (!is_first_contact) world.send(1, 0, 0, parcels.back());  // which nobody will receive
      }
      world.pump_rounds(100);
      if (is_first_contact && !world.outcome(last).is_over) continue;  // it needs the other end
      world.require_success(last);
      const Status done(StatusCode::peer_lost, "done");
      if (by_lanes) {
        world.at(0).close_lanes(0, 9, done);
      } else {
        world.close(0, 1, 0, done);
      }
      Parcel room(1000);
      for (std::uint64_t i = 0; i < 5; ++i) {
        world.require_success(world.receive(1, 0, 0, room));
        REQUIRE(room.holds(i));
      }
      const Token none = world.receive(1, 0, 0, room);
      world.finish(none);
      require_lost(world, none, 0);
    }
  }
}

TRANSPORT_TEST("an address where nobody is fails in time, and says what to try") {
  if (subject.unreachable_address.empty()) return;
  TransportWorld world(subject, 2, {.connect_timeout = 700ms}, false);
  world.set_address(1, subject.unreachable_address);
  world.connect(0);
  Parcel parcel(10);
  const Stopwatch watch;
  const Token sent = world.send(0, 1, 0, parcel);
  const Token received = world.receive(0, 1, 0, parcel);
  world.finish();
  REQUIRE(watch.elapsed() < soon);
  for (const Token token : {sent, received}) {
    const Status& status = world.outcome(token).status;
    INFO(status.to_string());
    REQUIRE((status.code() == StatusCode::timeout || status.code() == StatusCode::peer_lost));
    REQUIRE(status.peer() == 1);
    REQUIRE(status.what().find("rank 1") != std::string_view::npos);
    REQUIRE_FALSE(status.hint().empty());
  }
}

TRANSPORT_TEST("ranks of another epoch or world are refused, and say so") {
  const auto net = subject.make_net();
  const auto other = [](TransportOptions options, bool is_odd) {
    options.epoch = is_odd ? 8 : 7;
    options.connect_timeout = 2s;
    return options;
  };
  for (const bool is_odd : {false, true}) {
    const auto ours = net->make(other({.rank = 0, .size = 2}, is_odd));
    const auto theirs = net->make(other({.rank = 1, .size = 2}, !is_odd));
    const std::string addresses[] = {ours->address(), theirs->address()};
    require(ours->connect(addresses));
    require(theirs->connect(addresses));
    const ChannelId channel = require(ours->open(1, 0));
    Parcel parcel(10);
    const TransportOp send = {.channel = channel, .first = parcel.first()};
    const TransportOp receive = {
        .kind = TransportOp::Kind::recv, .channel = channel, .first = parcel.first()};
    for (const TransportOp* const op : {&receive, &send}) {
      for (int tries = 0; ours->post({op, 1}) == 0; ++tries) {
        REQUIRE(tries < 1000);
        net->pass_time();
      }
    }
    std::vector<TransportCompletion> over;
    const Stopwatch watch;
    while (over.size() < 2 && watch.elapsed() < soon) {
      TransportCompletion next;
      if (ours->poll({&next, 1}) == 1) over.push_back(next);
      static_cast<void>(theirs->poll({&next, 1}));
      net->pass_time();
    }
    REQUIRE(over.size() == 2);
    for (const TransportCompletion& each : over) {
      INFO(each.status.to_string());
      REQUIRE_FALSE(each.status.ok());
      REQUIRE(each.status.peer() == 1);
      REQUIRE(each.status.to_string().find("epoch") != std::string::npos);
    }
  }
}

}  // namespace hocket::testing
