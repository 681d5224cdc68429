#include "choose/cost.hpp"

#include <algorithm>
#include <bit>

#include "base/limits.hpp"
#include "choose/legs.hpp"
#include "plan/builders/phases.hpp"

namespace hocket::choose {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Problem;
using plan::rounds_min;

double seconds_per_byte(double bytes_per_second) noexcept {
  return bytes_per_second > 0 ? 1 / bytes_per_second : 0;
}

/// Ranks that have a message at the same time: in a tree few, in a star one beside its middle, and
/// those of a power of two where the others are folded into them.
std::uint32_t busy_ranks(const Algorithm& algorithm, const Problem& problem) noexcept {
  using plan::Reach;
  const bool is_folded = algorithm.reach == Reach::paired_halves ||
                         algorithm.reach == Reach::nearest_first ||
                         algorithm.name == "recursive_doubling";
  if (algorithm.reach == Reach::trees) return 1;
  if (algorithm.reach == Reach::star) return 2;
  return is_folded ? std::bit_floor(problem.size) : problem.size;
}

/// Where ranks share processors, each message waits for those of the others, and for its rank's
/// turn. Those of a star wait for nobody's: what crowded() adds for others is taken back.
Network with_waits(Network network, const Problem& problem, const Algorithm& algorithm) noexcept {
  if (algorithm.reach == plan::Reach::star) {
    for (double* const each : {&network.host_latency, &network.host_overhead, &network.overhead}) {
      *each /= network.ranks_per_core;
    }
  }
  if (network.processors == 0 || network.processors >= problem.size) return network;
  const double sharing =
      std::max(1.0, static_cast<double>(busy_ranks(algorithm, problem)) / network.processors);
  for (double* const each : {&network.host_overhead, &network.overhead}) {
    *each = (*each + network.handover) * sharing;
  }
  network.acknowledge *= sharing;
  return network;
}

/// What a message between two ranks costs.
struct Link {
  double overhead;  // at one end
  double latency;   // with the overheads
  double seconds_per_byte;
  double burst;

  [[nodiscard]] double sending(double bytes) const noexcept {
    return std::max(0.0, bytes - burst) * seconds_per_byte;
  }
};

bool is_one_host(const Problem& problem, const Network& network) noexcept {
  return problem.size <= network.ranks_per_host;
}

Link host_link(const Network& network) noexcept {
  return {network.host_overhead, network.host_latency + 2 * network.host_overhead,
          seconds_per_byte(network.host_bandwidth), 0};
}

/// Between hosts, for one rank alone.
Link network_link(const Network& network) noexcept {
  return {network.overhead, network.latency + 2 * network.overhead,
          seconds_per_byte(network.nic_bandwidth * (1 - network.background)), network.burst};
}

/// Senders that a host may have at once beyond one, since not all ranks are in step. Who has the
/// same partners all the time has one; pairs wait for each other.
double strangers(plan::Reach reach, std::uint32_t hosts) noexcept {
  switch (reach) {
    case plan::Reach::all:
      return hosts > 2 ? hosts - 2 : 0;
    case plan::Reach::star:  // half of the time
      return hosts > 2 ? (hosts - 2) / 2.0 : 0;
    case plan::Reach::next:
    case plan::Reach::paired_halves:
    case plan::Reach::trees:
      return 0;
    default:
      return hosts > 2 ? 1 : 0;
  }
}

/// Between hosts, where all of them send.
Link far_link(const Algorithm& algorithm, const Problem& problem, const Network& network) noexcept {
  Link link = network_link(network);
  const std::uint32_t hosts = (problem.size - 1) / network.ranks_per_host + 1;
  link.seconds_per_byte *= 1 + network.incast * strangers(algorithm.reach, hosts);
  // Where few ranks of a switch talk to those beyond it, they don't crowd its uplinks.
  if (algorithm.reach == plan::Reach::next || algorithm.reach == plan::Reach::trees) return link;
  if (network.hosts_per_leaf == 0 || hosts <= network.hosts_per_leaf) return link;
  double crowd = network.leaf_oversubscription;
  link.latency += network.hop_latency;
  const std::uint32_t leaves = (hosts - 1) / network.hosts_per_leaf + 1;
  if (network.leaves_per_pod > 0 && leaves > network.leaves_per_pod) {
    crowd = std::max(crowd, crowd * network.pod_oversubscription);
    link.latency += network.hop_latency;
  }
  link.seconds_per_byte *= std::max(1.0, crowd);
  return link;
}

/// Inside a host, where all its ranks send, perhaps to one of them.
Link near_link(const Algorithm& algorithm, const Problem& problem,
               const Network& network) noexcept {
  Link link = host_link(network);
  if (algorithm.reach == plan::Reach::star) return link;
  const std::uint32_t ranks = std::min(problem.size, network.ranks_per_host);
  link.seconds_per_byte =
      std::max(link.seconds_per_byte, ranks * seconds_per_byte(network.memory_bandwidth));
  if (algorithm.reach == plan::Reach::all && ranks > 2) {
    link.seconds_per_byte *= 1 + network.host_incast * (ranks - 2);
  }
  return link;
}

/// What the messages of a leg cost that go one way.
struct Toll {
  Toll(const Way& way, const Link& link, double crowd, const Leg& leg, double reducing) noexcept
      : sending(link.sending(leg.block_bytes)),
        crowded(crowd * sending),
        path(way.hops * link.latency + way.blocks * (sending + reducing)) {}

  double sending;  // a block, alone
  double crowded;  // a block, while others send too
  double path;     // until the last block is there that waits for others
};

struct Paces {
  Link inside;
  Link between;
  double reduce = 0;       // seconds a byte
  double acknowledge = 0;  // a message of several packets
  double ends = 2;         // at which a rank's core has work: it sends, and it receives
  bool is_crowded = false;
};

/// From one to the next of many messages. While a crowded core has work with one, it moves no
/// other.
double pace(const Leg& leg, double sending, double reducing, const Link& link,
            const Paces& paces) noexcept {
  const double core = paces.ends * link.overhead;
  if (paces.is_crowded) return sending + core + reducing;
  return std::max(leg.is_serial ? sending + reducing : sending, core + reducing);
}

double leg_seconds(const Leg& leg, Paces paces) noexcept {
  if (leg.block_bytes > packet_bytes) {
    for (Link* const each : {&paces.inside, &paces.between}) {
      each->latency += paces.acknowledge;
      each->overhead += paces.acknowledge / 2;  // of the two ends only one
    }
  }
  const double reducing = leg.reduced * leg.block_bytes * paces.reduce;
  const Toll near(leg.inside, paces.inside, 1, leg, reducing);
  const Toll far(leg.between, paces.between, leg.crowd, leg, reducing);
  // While a rank's answer is on its way, others use the NIC: they don't wait on top of each other.
  const double busy =
      leg.between.blocks > 0 ? leg.between.blocks * far.crowded + paces.between.latency : 0;
  const double path = near.path + std::max(far.path, busy);
  const double near_pace = pace(leg, near.sending, reducing, paces.inside, paces);
  const double far_pace = pace(leg, far.crowded, reducing, paces.between, paces);
  if (!leg.is_in_step) {
    return path + leg.inside.streamed * near_pace + leg.between.streamed * far_pace;
  }
  const double slowest = leg.between.hops > 0 ? std::max(near_pace, far_pace) : near_pace;
  const double streamed = leg.inside.streamed + leg.between.streamed;
  if (streamed > 0) return path + streamed * slowest;
  return std::max(path, (leg.inside.hops + leg.between.hops) * slowest);
}

/// What passes at once is paid for by those that come later: so long are the NICs busy.
double nic_seconds(const Legs& all, const Link& link) noexcept {
  double seconds = 0;
  for (std::uint32_t i = 0; i < all.count; ++i) {
    const Leg& leg = all.legs[i];
    seconds += (leg.between.blocks + leg.between.streamed) * leg.block_bytes * leg.crowd *
               link.seconds_per_byte;
  }
  return seconds;
}

}  // namespace

double bound_seconds(const Problem& problem, double bytes, const Network& network) noexcept {
  if (problem.size < 2) return 0;
  const Link inside = host_link(network);
  const std::uint32_t members = std::min(problem.size, network.ranks_per_host);
  const double part = least_part(problem.operation, problem.size) * bytes;
  if (is_one_host(problem, network)) {
    return std::max(rounds_min(problem.size) * inside.latency, part * inside.seconds_per_byte);
  }
  const Link between = network_link(network);
  const std::uint32_t hosts = (problem.size - 1) / network.ranks_per_host + 1;
  const double latency =
      rounds_min(hosts) * between.latency +
      (members > 1 ? rounds_min(members) * std::min(inside.latency, between.latency) : 0);
  const std::uint32_t nics = std::min(members, network.nics_per_host);
  const bool is_own = problem.operation == Operation::all_to_all;  // all of it, for each rank
  const double host_part = least_part(problem.operation, hosts) * bytes * (is_own ? members : 1);
  return std::max(latency, host_part * between.seconds_per_byte / nics);
}

double bus_factor(Operation operation, std::uint32_t size) noexcept {
  return least_part(operation, size);
}

double estimate_seconds(const Algorithm& algorithm, const Problem& problem, double bytes,
                        const Network& alone) {
  if (problem.size < 2) return bytes * seconds_per_byte(alone.copy_speed);
  const Network network = with_waits(alone, problem, algorithm);
  const Paces paces = {.inside = near_link(algorithm, problem, network),
                       .between = far_link(algorithm, problem, network),
                       .reduce = seconds_per_byte(network.reduce_speed),
                       .acknowledge = network.acknowledge,
                       .ends = is_one_way(algorithm) ? 1.0 : 2.0,
                       .is_crowded = network.ranks_per_core > 1};
  const Legs all = legs_of(algorithm, problem, bytes, network);
  double seconds = all.copied_bytes * seconds_per_byte(network.copy_speed);
  for (std::uint32_t i = 0; i < all.count; ++i) seconds += leg_seconds(all.legs[i], paces);
  return network.burst > 0 ? std::max(seconds, nic_seconds(all, paces.between)) : seconds;
}

bool is_pipeline(const Algorithm& algorithm) {
  return algorithm.blocks_per_chunk({.size = 2, .pieces = 2}) !=
             algorithm.blocks_per_chunk({.size = 2, .pieces = 3}) ||
         algorithm.bound({.size = 2, .pieces = 2}).blocks_sent !=
             algorithm.bound({.size = 2, .pieces = 3}).blocks_sent;
}

std::uint32_t best_pieces(const Algorithm& algorithm, Problem problem, double bytes,
                          const Network& network) {
  if (!is_pipeline(algorithm)) return 1;
  std::uint32_t best = 1;
  double lowest = 0;
  for (problem.pieces = 1; problem.pieces <= limits::plan_pieces_max; problem.pieces *= 2) {
    const double seconds = estimate_seconds(algorithm, problem, bytes, network);
    if (problem.pieces == 1 || seconds < lowest) {
      lowest = seconds;
      best = problem.pieces;
    }
  }
  return best;
}

}  // namespace hocket::choose
