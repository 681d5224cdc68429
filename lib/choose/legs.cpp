#include "choose/legs.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "plan/builders/canonical.hpp"
#include "plan/builders/direct.hpp"
#include "plan/builders/phases.hpp"

namespace hocket::choose {
namespace {

using plan::Algorithm;
using plan::Bound;
using plan::Operation;
using plan::Problem;
using plan::Reach;
using plan::rounds_min;

/// So much longer does a pipeline take in which a rank reduces what comes from several others in
/// turns, for they wait for each other: found in simulations.
constexpr double waits_for_peers = 1.5;

/// Who is where.
struct World {
  World(const Problem& problem, const Network& network) noexcept
      : size(problem.size),
        per_host(std::min(problem.size, network.ranks_per_host)),
        hosts((size - 1) / per_host + 1),
        eager_bytes(network.eager_bytes),
        per_nic(
            std::ceil(static_cast<double>(per_host) / std::min(per_host, network.nics_per_host))) {}

  /// The part of all ranks whose next one is on another host.
  [[nodiscard]] double borders() const noexcept { return static_cast<double>(hosts) / size; }

  std::uint32_t size;
  std::uint32_t per_host;
  std::uint32_t hosts;
  double eager_bytes;
  double per_nic;  // ranks
};

/// Which part of a leg's hops, and of its blocks, stays inside the hosts, and how many of the ranks
/// that share a NIC send to other hosts at once.
struct Share {
  double hops = 0;
  double blocks = 0;
  double crowd = 1;
};

/// Where ranks are folded to a power of two, neighbours make a pair, of which one only goes on.
double members_per_host(const World& world) noexcept {
  const double members = std::bit_floor(world.size);
  return world.per_host * members / world.size;
}

/// Of swing's rounds, each has twice the distance and half the blocks of the one before; only those
/// ranks that are closer to the border of the host than the distance send across.
double inside_of_nearest_first(const World& world) noexcept {
  double outside = 0;
  double distance = 1;
  for (double part = 0.5; part * world.size >= 0.5; part /= 2, distance *= 2) {
    outside += part * std::min(1.0, distance / world.per_host);
  }
  return 1 - outside;
}

Share share_of(const Algorithm& algorithm, const Problem& problem, const World& world) noexcept {
  if (world.hosts == 1) return {.hops = 1, .blocks = 1};
  if (world.per_host == 1) return {};
  const double rounds = rounds_min(problem.size);
  const double inside = std::max(1.0, std::log2(members_per_host(world)));
  const double near = (world.per_host - 1.0) / (world.size - 1.0);
  switch (algorithm.reach) {
    case Reach::next:
      return {.hops = 1 - world.borders(), .blocks = 1 - world.borders()};
    case Reach::powers:
      return {.hops = inside / rounds, .blocks = inside / rounds, .crowd = world.per_nic};
    case Reach::rotating:
      return {
          .hops = (inside - 1) / rounds, .blocks = (inside - 1) / rounds, .crowd = world.per_nic};
    case Reach::halves:
      // To or from a root, half of the way is along a tree: subtrees.
      return {.hops = (inside - 1) / rounds,
              .blocks = near,
              .crowd = has_root(problem.operation) ? (1 + world.per_nic) / 2 : world.per_nic};
    case Reach::paired_halves:
      return {.hops = inside / rounds, .blocks = near, .crowd = world.per_nic};
    case Reach::nearest_first:
      return {.hops = 1 / rounds, .blocks = inside_of_nearest_first(world), .crowd = world.per_nic};
    case Reach::subtrees:
      return {.hops = inside / rounds, .blocks = near};
    case Reach::trees:
      return {.hops = inside / rounds,
              .blocks = inside / rounds,
              .crowd = std::min(2.0, world.per_nic)};
    case Reach::all:
    case Reach::hosts:
    case Reach::star:
      break;
  }
  return {.blocks = near, .crowd = is_one_way(algorithm) ? 1 : world.per_nic};
}

double wait_factor(const Algorithm& algorithm, const Problem& problem) noexcept {
  const bool has_turns = algorithm.reach == Reach::trees || algorithm.reach == Reach::rotating;
  if (!has_turns || problem.size < 3 || !reduces(problem.operation)) return 1;
  // What is gathered after it was reduced comes from one parent only.
  return problem.operation == Operation::all_reduce ? (1 + waits_for_peers) / 2 : waits_for_peers;
}

/// Bytes that a rank copies before it can send, or that it may not overwrite, where in and out are
/// the same memory, before it has sent them.
double copied_bytes(const Algorithm& algorithm, const Problem& problem, double bytes) noexcept {
  if (problem.operation == Operation::broadcast && algorithm.reach != Reach::next) return bytes;
  if (problem.operation == Operation::all_to_all && algorithm.reach == Reach::powers) {
    return bytes * (1 + rounds_min(problem.size) / 2.0);  // half of all is packed for each round
  }
  return 0;
}

Leg leg_of(const Algorithm& algorithm, const Problem& problem, double bytes, const World& world) {
  const Bound bound = algorithm.bound(problem);
  const std::uint32_t per_chunk = algorithm.blocks_per_chunk(problem);
  const std::uint32_t blocks = shape_of(problem, per_chunk).vector_blocks();
  const auto rounds = static_cast<double>(bound.rounds);
  const double in_line = std::max({static_cast<double>(bound.blocks_sent), rounds,
                                   static_cast<double>(bound.blocks_in_line),
                                   least_part(problem.operation, problem.size) * blocks});
  const double hops = bound.hops > 0 ? static_cast<double>(bound.hops) : rounds;
  const bool is_eager = bytes / blocks <= world.eager_bytes;
  const bool is_sum = reduces(problem.operation);
  const double waits = wait_factor(algorithm, problem);
  const double streamed = std::max(0.0, rounds - hops);
  const double filling = (in_line - streamed) * (is_eager ? 1 : waits);
  const Share share = share_of(algorithm, problem, world);
  Leg leg = {.inside = {hops * share.hops, filling * share.blocks, waits * streamed * share.blocks},
             .between = {hops * (1 - share.hops), filling * (1 - share.blocks),
                         waits * streamed * (1 - share.blocks)},
             .block_bytes = problem.operation == Operation::barrier ? 0 : bytes / blocks,
             .crowd = share.crowd};
  if (is_sum) {
    // A vector that is not divided is reduced wherever it goes, but where one rank does that for
    // all; else half goes to be reduced and half is the result on its way.
    const bool has_way_back = per_chunk > 1 || algorithm.reach == Reach::star;
    leg.reduced = problem.operation == Operation::all_reduce && has_way_back ? 0.5 : 1;
  }
  leg.is_in_step = algorithm.reach == Reach::next || algorithm.reach == Reach::trees;
  // Where a place is free for each message, it comes while another is reduced.
  const bool is_from_many = algorithm.reach == Reach::all || algorithm.reach == Reach::star;
  leg.is_serial = is_sum && !is_eager && is_from_many && !algorithm.is_canonical;
  return leg;
}

/// To, or from, all others of the host at once; `messages` to each.
Leg inside_leg(const World& world, double part_bytes, double messages, bool reduces) noexcept {
  const double others = world.per_host - 1;
  return {.inside = {1, 1, others * messages - 1},
          .block_bytes = part_bytes / messages,
          .reduced = reduces ? 1.0 : 0.0};
}

/// Between ranks of one slot, in rounds of one message or several, all of one size.
Leg team_leg(const World& world, double message_bytes, double rounds, double messages,
             double reduced) noexcept {
  return {.between = {rounds, rounds, messages - rounds},
          .block_bytes = message_bytes,
          .crowd = world.per_nic,
          .reduced = reduced};
}

Legs two_level_legs(const Problem& problem, double bytes, const World& world) {
  const double slice = bytes / world.per_host;
  const double chunk = slice / world.hosts;  // of a team's vector
  const double others = world.hosts - 1.0;
  const double rounds = rounds_min(world.hosts);
  const double messages = plan::circulant_messages(world.hosts);
  const Leg slices_in = inside_leg(world, slice, 1, reduces(problem.operation));
  const Leg slices_out = inside_leg(world, slice, 1, false);
  switch (problem.operation) {
    case Operation::all_reduce: {
      const double message = others * chunk / messages;
      const Leg team = team_leg(world, message, 2 * rounds, 2 * messages, 0.5);
      return {.legs = {slices_in, team, slices_out}, .count = 3};
    }
    case Operation::reduce_scatter: {  // the chunks of a team are apart in the vector
      const Leg inside = inside_leg(world, slice, world.hosts, true);
      return {.legs = {inside, team_leg(world, chunk, rounds, others, 1)}, .count = 2};
    }
    case Operation::all_gather: {
      const Leg inside = inside_leg(world, slice, world.hosts, false);
      return {.legs = {team_leg(world, chunk, rounds, others, 0), inside}, .count = 2};
    }
    default: {
      const double reduced = reduces(problem.operation) ? 1 : 0;
      const Leg team = team_leg(world, slice, rounds, rounds, reduced);
      return {.legs = {slices_in, team, slices_out}, .count = 3};
    }
  }
}

/// A reduce-scatter, and then a gather, which crowds nobody but the root.
Legs canonical_reduce_legs(Problem problem, double bytes, const World& world) {
  Legs legs = {.count = 2};
  problem.operation = Operation::reduce_scatter;
  legs.legs[0] = leg_of(plan::canonical_reduce_scatter_algorithm, problem, bytes, world);
  problem.operation = Operation::gather;
  legs.legs[1] = leg_of(plan::direct_gather_algorithm, problem, bytes, world);
  return legs;
}

}  // namespace

bool is_one_way(const Algorithm& algorithm) noexcept {
  return algorithm.reach == Reach::star || algorithm.operation == Operation::gather ||
         algorithm.operation == Operation::scatter;
}

double least_part(Operation operation, std::uint32_t size) noexcept {
  const double others = static_cast<double>(size - 1) / size;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * others;
    case Operation::broadcast:
    case Operation::reduce:
    case Operation::scan:
    case Operation::exscan:
      return size > 1 ? 1 : 0;
    case Operation::barrier:
      return 0;
    default:
      return others;
  }
}

Legs legs_of(const Algorithm& algorithm, const Problem& problem, double bytes,
             const Network& network) {
  const World world(problem, network);
  const bool has_levels = world.hosts > 1 && world.per_host > 1;
  Legs all = {.legs = {leg_of(algorithm, problem, bytes, world)}, .count = 1};
  if (algorithm.reach == Reach::hosts && has_levels) all = two_level_legs(problem, bytes, world);
  if (algorithm.build == plan::canonical_reduce) {
    all = canonical_reduce_legs(problem, bytes, world);
  }
  all.copied_bytes = copied_bytes(algorithm, problem, bytes);
  return all;
}

}  // namespace hocket::choose
