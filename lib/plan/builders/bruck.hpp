// Bruck's: what a rank has doubles in every round.
#pragma once

#include <algorithm>
#include <bit>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

inline constexpr Algorithm bruck_all_gather_algorithm = {
    .name = "bruck",
    .operation = Operation::all_gather,
    .summary = "fewest bytes in the fewest rounds; near hops carry little, far ones much",
    .build =
        [](PlanWriter& plan) {
          own_block_to_out(plan);
          const std::uint32_t size = plan.size();
          for (std::uint32_t skip = 1; skip < size; skip *= 2) {
            const std::uint32_t moved = std::min(skip, size - skip);
            plan.send(plan.behind(skip), {Buffer::out, plan.rank(), moved});
            plan.recv(plan.ahead(skip), {Buffer::out, plan.ahead(skip), moved});
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = problem.size - 1U};
    },
    .allows_uneven = true,
};

/// A block for the rank `distance` further on travels by the powers of two in `distance`. Between
/// rounds it is in scratch, at the place of its distance from where it is to where it goes.
inline constexpr Algorithm bruck_all_to_all_algorithm = {
    .name = "bruck",
    .operation = Operation::all_to_all,
    .summary = "few rounds, each with half of all bytes; for small blocks",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t size = plan.size();
          const std::uint32_t rank = plan.rank();
          plan.copy({Buffer::in, rank, 1}, {Buffer::out, rank, 1});
          // Scratch: what is on its way, by distance from its origin; what goes now; what comes now.
          const std::uint32_t going = size;
          const std::uint32_t coming = 2 * size;
          for (std::uint32_t skip = 1; skip < size; skip *= 2) {
            std::uint32_t moved = 0;
            for (std::uint32_t distance = skip; distance < size; ++distance) {
              if ((distance & skip) == 0) continue;
              const bool is_fresh = distance % skip == 0 && (distance & (skip - 1)) == 0;
              const Range from = is_fresh ? Range{Buffer::in, plan.ahead(distance), 1}
                                          : Range{Buffer::scratch, distance, 1};
              plan.copy(from, {Buffer::scratch, going + moved, 1});
              ++moved;
            }
            plan.send(plan.ahead(skip), {Buffer::scratch, going, moved});
            plan.recv(plan.behind(skip), {Buffer::scratch, coming, moved});
            moved = 0;
            for (std::uint32_t distance = skip; distance < size; ++distance) {
              if ((distance & skip) == 0) continue;
              const bool is_there = distance < 2 * skip;  // no higher power is left
              const Range to = is_there
                                   ? Range{Buffer::out, plan.behind(distance), 1}
                                   : Range{Buffer::scratch, distance, 1};
              plan.copy({Buffer::scratch, coming + moved, 1}, to);
              ++moved;
            }
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      const std::uint64_t size = problem.size;
      std::uint64_t blocks = 0;  // each goes as often as there are powers of two in its distance
      for (std::uint64_t distance = 1; distance < size; ++distance) {
        blocks += static_cast<std::uint64_t>(std::popcount(distance));
      }
      return {.rounds = rounds_min(problem.size), .blocks_sent = blocks};
    },
};

}  // namespace hocket::plan
