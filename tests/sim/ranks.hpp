// A simulated world whose ranks' transports are all run from one place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "support/catch.hpp"
#include "transports/sim/world.hpp"

namespace hocket::testing {

using Bytes = std::vector<std::byte>;

/// Not twice the same.
[[nodiscard]] inline Bytes message(std::uint64_t seed, std::size_t bytes) {
  Bytes made(bytes);
  SeededRandom random(seed);
  for (std::byte& each : made) each = static_cast<std::byte>(random.next());
  return made;
}

[[nodiscard]] inline TransportOp send_of(ChannelId channel, Bytes& from, std::uint64_t token = 0) {
  return {.channel = channel, .first = {from.data(), from.size()}, .token = token};
}

[[nodiscard]] inline TransportOp receive_of(ChannelId channel, Bytes& to, std::uint64_t token = 0) {
  return {.kind = TransportOp::Kind::recv,
          .channel = channel,
          .first = {to.data(), to.size()},
          .token = token};
}

/// All connected with each other.
class Ranks {
 public:
  explicit Ranks(const SimWorldOptions& options) : world(options) {
    std::vector<std::string> addresses;
    for (std::uint32_t rank = 0; rank < options.size; ++rank) {
      transports.push_back(world.transport(rank));
      addresses.push_back(transports.back()->address());
    }
    for (const auto& each : transports) REQUIRE(each->connect(addresses).ok());
  }

  /// The same channel, at both ends.
  struct Ends {
    ChannelId a;
    ChannelId b;
  };
  Ends open(std::uint32_t a, std::uint32_t b, std::uint64_t lane) {
    return {transports[a]->open(b, lane).value(), transports[b]->open(a, lane).value()};
  }

  /// Until it is taken.
  void post(std::uint32_t rank, const TransportOp& op) {
    while (transports[rank]->post({&op, 1}) == 0) require_step();
  }

  /// What is ready now.
  std::vector<TransportCompletion> poll(std::uint32_t rank) {
    std::vector<TransportCompletion> all;
    std::array<TransportCompletion, 4> some;
    while (const std::size_t count = transports[rank]->poll(some)) {
      all.insert(all.end(), some.begin(), some.begin() + static_cast<std::ptrdiff_t>(count));
    }
    return all;
  }

  /// The next that the rank gets.
  TransportCompletion next(std::uint32_t rank) {
    TransportCompletion one;
    while (transports[rank]->poll({&one, 1}) == 0) require_step();
    return one;
  }

  /// Until nothing happens any more.
  void run() {
    while (world.step()) continue;
  }

  void require_step() {
    if (world.step()) return;
    FAIL("a hang\n" << world.story());
  }

  SimWorld world;
  std::vector<std::unique_ptr<Transport>> transports;
};

}  // namespace hocket::testing
