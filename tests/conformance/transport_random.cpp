// Random ops from a seed, which is printed when the test fails. TEST_SEED takes another one.
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "conformance/transport_conformance.hpp"
#include "conformance/transport_world.hpp"
#include "support/seeds.hpp"

namespace hocket::testing {
namespace {

/// A message on its way: its receive is posted before, after, or long after its send.
struct Message {
  std::uint64_t seed;
  Parcel from;
  Parcel to;
  Token sent = 0;
  Token received = 0;
};

class Chaos {
 public:
  Chaos(const TransportSubject& subject, std::uint64_t seed)
      : random_(seed), world_(subject, static_cast<std::uint32_t>(2 + below(3))) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
    while (!links_done()) catch_up();
    world_.finish();
    for (auto& [place, link] : links_) check(link);
  }

 private:
  struct Link {
    std::deque<Message> messages = {};
    std::size_t sent = 0;
    std::size_t received = 0;
  };

  std::uint64_t below(std::uint64_t bound) { return random_() % bound; }

  void step() {
    const auto from = static_cast<std::uint32_t>(below(world_.size()));
    const auto to =
        static_cast<std::uint32_t>((from + 1 + below(world_.size() - 1)) % world_.size());
    Place place = {from, to, below(3)};
    Link& link = links_[place];
    const std::uint64_t burst = 1 + below(below(8) == 0 ? 40 : 3);
    for (std::uint64_t i = 0; i < burst; ++i) {
      if (below(2) == 0) send(place, link);
      if (below(2) == 0) receive(place, link);
    }
    world_.set_poll_batch(1 + below(64));
    world_.set_post_batch(1 + below(64));
    world_.pump_rounds(static_cast<int>(below(3)));
  }

  std::uint64_t some_bytes() {
    switch (below(6)) {
      case 0:
        return below(3);
      case 1:
        return below(200'000);
      case 2:
        return below(10'000);
      default:
        return below(300);
    }
  }

  Message& message(Link& link, std::size_t number) {
    while (link.messages.size() <= number) {
      const std::uint64_t bytes = some_bytes();
      const std::uint64_t room = bytes + (below(3) == 0 ? some_bytes() : 0);
      const std::uint64_t seed = random_();
      link.messages.push_back({.seed = seed,
                               .from = Parcel(bytes, below(bytes + 1)),
                               .to = Parcel(room, below(room + 1))});
      link.messages.back().from.fill(seed);
    }
    return link.messages[number];
  }

  struct Place {
    std::uint32_t from;
    std::uint32_t to;
    std::uint64_t lane;
    auto operator<=>(const Place&) const = default;
  };

  void send(const Place& place, Link& link) {
    Message& next = message(link, link.sent++);
    next.sent = world_.send(place.from, place.to, place.lane, next.from);
  }

  void receive(const Place& place, Link& link) {
    Message& next = message(link, link.received++);
    next.received = world_.receive(place.to, place.from, place.lane, next.to, below(2) == 0);
  }

  [[nodiscard]] bool links_done() const {
    for (const auto& [place, link] : links_) {
      if (link.sent != link.received) return false;
    }
    return true;
  }

  void catch_up() {
    for (auto& [place, link] : links_) {
      if (link.sent < link.received) send(place, link);
      if (link.received < link.sent) receive(place, link);
    }
    world_.pump();
  }

  void check(Link& link) {
    for (Message& each : link.messages) {
      world_.require_success(each.sent);
      world_.require_success(each.received);
      REQUIRE(world_.outcome(each.received).bytes == each.from.bytes());
      REQUIRE(each.to.holds(each.seed, each.from.bytes()));
    }
  }

  std::mt19937_64 random_;
  TransportWorld world_;
  std::map<Place, Link> links_;
};

}  // namespace

TRANSPORT_TEST("random ops: each over once, and everything where it belongs") {
  const std::uint64_t first = fresh_seed();
  for (std::uint64_t seed = first; seed < first + 12; ++seed) {
    CAPTURE(seed);
    Chaos(subject, seed).run(150);
  }
}

}  // namespace hocket::testing
