// The links of a network, and when each has had the time for all that came to it.
//
// A message leaves through the first link on its way, which is its sender's own, as a whole: after
// all those that came there before it. On the links behind that it mixes with others. It begins to
// cross all of them when it begins to leave, and has crossed one when it has left and the link has
// had the time for it and for all that came before it. So links are shared without a loss, and
// whoever comes first is done first, where an even share would let all be done last. Queues inside
// the network are as long as they need to be, and hold up nobody behind them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "choose/network.hpp"
#include "simulator/time.hpp"

namespace hocket::sim {

using Link = std::uint32_t;

class Links {
 public:
  /// A network that passed check_network.
  Links(const choose::Network& network, std::uint32_t ranks);

  struct Way {
    std::array<Link, 6> links = {};
    std::uint8_t count = 0;
    Time latency = 0;
    Time overhead = 0;
  };
  /// Of a message from one rank to another.
  [[nodiscard]] Way way(std::uint32_t from, std::uint32_t to) const noexcept;
  /// Of one from rank 0 to a rank like it: out by its own links, and in by its own as well, as by
  /// those comes what another such rank sends.
  [[nodiscard]] Way way_among_alike() const noexcept;

  struct Departure {
    Time begin;
    Time end;
  };
  /// Lets a message leave that comes now. Nothing may have been asked for a later time before.
  Departure depart(const Way& way, std::uint64_t bytes, Time now) noexcept;
  /// Lets one cross the other links that begins to leave now; until when.
  Time pass(const Way& way, std::uint64_t bytes, Time now) noexcept;

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
    Time free = 0;  // from then on, if nothing passed at once
    Time busy = 0;  // for so long so far
  };

  /// When it has had the time for that many bytes more.
  Time cross(Link link, std::uint64_t bytes, Time now) noexcept;
  [[nodiscard]] Time when_free(Link link, Time now) const noexcept;
  void add(Kind kind, std::uint64_t count, double bandwidth);
  [[nodiscard]] std::uint32_t host_of(std::uint32_t rank) const noexcept {
    return rank / network_.ranks_per_host;
  }
  [[nodiscard]] std::uint32_t nic_of(std::uint32_t rank) const noexcept {
    return host_of(rank) * nics_ + rank % network_.ranks_per_host % nics_;
  }
  [[nodiscard]] Kind kind_of(Link link) const noexcept;

  choose::Network network_;
  std::uint32_t nics_;
  std::array<Link, kinds + 1> first_ = {};  // of each kind, and behind the last
  std::array<Pace, kinds> paces_ = {};
  std::vector<State> states_;
  Time burst_;  // that a NIC has at once, as the time that it else takes
  Time host_latency_;
  Time host_overhead_;
  Time latency_;
  Time overhead_;
  Time hop_latency_;
};

}  // namespace hocket::sim
