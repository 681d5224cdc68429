// The links of a network, and when each is free again.
//
// A message crosses the links on its way one after the other, without being stored in between: it
// begins to cross one as soon as it has begun to cross the one before it, and ends no earlier than
// there. A link serves messages whole, in the order in which they begin to come, and is busy for
// its own share of the time only: two messages that share a link take as long together as they
// would side by side, but the first one is there earlier. Queues in front of links are as long as
// they need to be, and cost nothing.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/network.hpp"
#include "sim/time.hpp"

namespace hocket::sim {

using Link = std::uint32_t;

class Links {
 public:
  /// A network that passed check_network.
  Links(const Network& network, std::uint32_t ranks);

  struct Way {
    std::array<Link, 6> links = {};
    std::uint8_t count = 0;
    Time latency = 0;
    Time overhead = 0;
  };
  /// Of a message from one rank to another.
  [[nodiscard]] Way way(std::uint32_t from, std::uint32_t to) const noexcept;

  struct Crossing {
    Time begin;
    Time end;
  };
  /// Lets a message cross that comes now; nothing that comes later may have been asked for before.
  Crossing cross(Link link, std::uint64_t bytes, Time now) noexcept;

  /// The first of those that were busy for longest.
  [[nodiscard]] Link busiest() const noexcept;
  [[nodiscard]] Time busy(Link link) const noexcept { return states_[link].busy; }
  /// "host 3, NIC 0, out"
  [[nodiscard]] std::string name(Link link) const;

 private:
  enum Kind : std::uint8_t {
    rank_out,
    rank_in,
    memory,
    nic_out,
    nic_in,
    leaf_up,
    leaf_down,
    pod_up,
    pod_down,
    kinds
  };

  struct State {
    Time free = 0;  // from then on
    Time busy = 0;  // for so long so far
  };

  void add(Kind kind, std::uint64_t count, double bandwidth);
  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept {
    return rank / network_.ranks_per_host;
  }
  [[nodiscard]] std::uint32_t nic_of(std::uint32_t rank) const noexcept {
    return host_of(rank) * nics_ + rank % network_.ranks_per_host % nics_;
  }
  [[nodiscard]] Kind kind_of(Link link) const noexcept;

  Network network_;
  std::uint32_t nics_;
  std::array<Link, kinds + 1> first_ = {};  // of each kind, and behind the last
  std::array<Pace, kinds> paces_ = {};
  std::vector<State> states_;
  Time host_latency_;
  Time host_overhead_;
  Time latency_;
  Time overhead_;
  Time hop_latency_;
};

}  // namespace hocket::sim
