#include "sim/cost.hpp"

#include <algorithm>

#include "plan/builders/phases.hpp"

namespace hocket::sim {
namespace {

using plan::Algorithm;
using plan::Bound;
using plan::Operation;
using plan::Problem;
using plan::rounds_min;

constexpr std::uint32_t pieces_max = 1024;

double seconds_per_byte(double bytes_per_second) noexcept {
  return bytes_per_second > 0 ? 1 / bytes_per_second : 0;
}

/// Of a vector that every one of so many has, or gets, or shares with the others: the part that
/// one of them must send or receive.
double least_part(Operation operation, std::uint32_t size) noexcept {
  const double others = static_cast<double>(size - 1) / size;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * others;
    case Operation::broadcast:
    case Operation::reduce:
      return size > 1 ? 1 : 0;
    case Operation::barrier:
      return 0;
    default:
      return others;
  }
}

/// What a message between two ranks costs.
struct Link {
  double overhead;  // at one end
  double latency;   // with the overheads
  double seconds_per_byte;
};

bool is_one_host(const Problem& problem, const Network& network) noexcept {
  return problem.size <= network.ranks_per_host;
}

Link host_link(const Network& network) noexcept {
  return {network.host_overhead, network.host_latency + 2 * network.host_overhead,
          seconds_per_byte(network.host_bandwidth)};
}

/// Between hosts, for one rank alone.
Link network_link(const Network& network) noexcept {
  return {network.overhead, network.latency + 2 * network.overhead,
          seconds_per_byte(network.nic_bandwidth * (1 - network.background))};
}

double ranks_per_nic(const Problem& problem, const Network& network) noexcept {
  const std::uint32_t ranks = std::min(problem.size, network.ranks_per_host);
  const std::uint32_t nics = std::min(ranks, network.nics_per_host);
  return static_cast<double>((ranks - 1) / nics + 1);
}

/// As seen by one rank while all others send as much to anywhere.
Link crowded_link(const Problem& problem, const Network& network) noexcept {
  if (is_one_host(problem, network)) {
    Link link = host_link(network);
    link.seconds_per_byte =
        std::max(link.seconds_per_byte, problem.size * seconds_per_byte(network.memory_bandwidth));
    return link;
  }
  Link link = network_link(network);
  const std::uint32_t hosts = (problem.size - 1) / network.ranks_per_host + 1;
  double crowd = 1;
  double oversubscription = 1;
  if (network.hosts_per_leaf > 0 && hosts > network.hosts_per_leaf) {
    oversubscription = network.leaf_oversubscription;
    crowd = std::max(crowd, oversubscription);
    link.latency += network.hop_latency;
    const std::uint32_t leaves = (hosts - 1) / network.hosts_per_leaf + 1;
    if (network.leaves_per_pod > 0 && leaves > network.leaves_per_pod) {
      crowd = std::max(crowd, oversubscription * network.pod_oversubscription);
      link.latency += network.hop_latency;
    }
  }
  link.seconds_per_byte *= ranks_per_nic(problem, network) * crowd;
  return link;
}

/// As seen by one rank while all others send as much to the next one.
Link neighbour_link(const Problem& problem, const Network& network) noexcept {
  const Link inside = host_link(network);
  if (is_one_host(problem, network)) return crowded_link(problem, network);
  const Link between = network_link(network);
  return {std::max(inside.overhead, between.overhead), std::max(inside.latency, between.latency),
          network.ranks_per_host > 1 ? std::max(inside.seconds_per_byte, between.seconds_per_byte)
                                     : between.seconds_per_byte};
}

/// Blocks that the rank must receive that must receive most.
double least_blocks(const Problem& problem, std::uint32_t blocks) noexcept {
  return least_part(problem.operation, problem.size) * blocks;
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
                        const Network& network) noexcept {
  if (problem.size < 2) return bytes * seconds_per_byte(network.copy_speed);
  const Bound bound = algorithm.bound(problem);
  const std::uint32_t per_chunk = algorithm.blocks_per_chunk(problem);
  const std::uint32_t blocks = shape_of(problem, per_chunk).vector_blocks();
  const Link link =
      algorithm.neighbours_only ? neighbour_link(problem, network) : crowded_link(problem, network);
  const double block = problem.operation == Operation::barrier ? 0 : bytes / blocks;
  const double sending = block * link.seconds_per_byte;
  const double reducing =
      reduces(problem.operation) ? block * seconds_per_byte(network.reduce_speed) : 0;

  const double in_line =
      std::max({static_cast<double>(bound.blocks_sent), static_cast<double>(bound.rounds),
                static_cast<double>(bound.blocks_in_line), least_blocks(problem, blocks)});
  const double hops =
      bound.hops > 0 ? static_cast<double>(bound.hops) : static_cast<double>(bound.rounds);
  // Messages that follow others without waiting for them: only what is slowest about them counts.
  const double streamed = std::max(0.0, static_cast<double>(bound.rounds) - hops);
  const double filling = in_line - streamed;
  // A vector that is not divided is reduced wherever it goes; of one that is, half goes to be
  // reduced and half is the result on its way.
  const bool is_half = problem.operation == Operation::all_reduce && per_chunk > 1;
  const double reduced = is_half ? 0.5 : 1;
  const bool is_one_way =
      problem.operation == Operation::gather || problem.operation == Operation::scatter;
  const double core = (is_one_way ? 1 : 2) * link.overhead + reduced * reducing;
  return hops * link.latency + filling * (sending + reduced * reducing) +
         streamed * std::max(sending, core);
}

bool is_pipeline(const Algorithm& algorithm) noexcept {
  return algorithm.blocks_per_chunk({.size = 2, .pieces = 2}) !=
             algorithm.blocks_per_chunk({.size = 2, .pieces = 3}) ||
         algorithm.bound({.size = 2, .pieces = 2}).blocks_sent !=
             algorithm.bound({.size = 2, .pieces = 3}).blocks_sent;
}

std::uint32_t best_pieces(const Algorithm& algorithm, Problem problem, double bytes,
                          const Network& network) noexcept {
  if (!is_pipeline(algorithm)) return 1;
  std::uint32_t best = 1;
  double lowest = 0;
  for (problem.pieces = 1; problem.pieces <= pieces_max; problem.pieces *= 2) {
    const double seconds = estimate_seconds(algorithm, problem, bytes, network);
    if (problem.pieces == 1 || seconds < lowest) {
      lowest = seconds;
      best = problem.pieces;
    }
  }
  return best;
}

}  // namespace hocket::sim
