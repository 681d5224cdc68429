// Bruck's all-to-all; and a barrier by which, as there, a rank hears of twice as many in each
// round.
#pragma once

#include <algorithm>
#include <bit>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// A block for the rank `distance` further on travels by the powers of two in `distance`. Between
/// rounds it is in scratch, at the place of its distance from its origin.
inline void bruck_all_to_all(PlanWriter& plan) {
  const std::uint32_t size = plan.size();
  const std::uint32_t going = size;  // behind what is on its way: what goes now, and what comes now
  const std::uint32_t coming = 2 * size;
  plan.copy({Buffer::in, plan.rank(), 1}, {Buffer::out, plan.rank(), 1});
  for (std::uint32_t skip = 1; skip < size; skip *= 2) {
    // The distances that have the skip in them are in rows; the first of each row moves only now.
    std::uint32_t moved = 0;
    for (std::uint32_t first = skip; first < size; first += 2 * skip) {
      const std::uint32_t row = std::min(skip, size - first);
      plan.copy({Buffer::in, plan.ahead(first), 1}, {Buffer::scratch, going + moved, 1});
      plan.copy({Buffer::scratch, first + 1, row - 1},
                {Buffer::scratch, going + moved + 1, row - 1});
      moved += row;
    }
    plan.send(plan.ahead(skip), {Buffer::scratch, going, moved});
    plan.recv(plan.behind(skip), {Buffer::scratch, coming, moved});
    std::uint32_t taken = std::min(skip, size - skip);
    for (std::uint32_t i = 0; i < taken; ++i) {  // they have no farther to go
      plan.copy({Buffer::scratch, coming + i, 1}, {Buffer::out, plan.behind(skip + i), 1});
    }
    for (std::uint32_t first = 3 * skip; first < size; first += 2 * skip) {
      const std::uint32_t row = std::min(skip, size - first);
      plan.copy({Buffer::scratch, coming + taken, row}, {Buffer::scratch, first, row});
      taken += row;
    }
  }
}

inline constexpr Algorithm bruck_all_to_all_algorithm = {
    .name = "bruck",
    .operation = Operation::all_to_all,
    .summary = "few rounds, each with half of all bytes; for small blocks",
    .build = bruck_all_to_all,
    .bound = [](const Problem& problem) -> Bound {
      const std::uint64_t size = problem.size;
      std::uint64_t blocks = 0;  // each goes as often as there are powers of two in its distance
      for (std::uint64_t distance = 1; distance < size; ++distance) {
        blocks += static_cast<std::uint64_t>(std::popcount(distance));
      }
      return {.rounds = rounds_min(problem.size), .blocks_sent = blocks};
    },
    .reach = Reach::powers,
    .symmetry = Symmetry::rotated_but_scratch,
};

/// In each round a rank hears of twice as many. What it has heard is in `out` and in scratch by
/// turns: were it in one place, each rank would have to hear before it could speak.
inline constexpr Algorithm dissemination_barrier_algorithm = {
    .name = "dissemination",
    .operation = Operation::barrier,
    .summary = "fewest rounds",
    .build =
        [](PlanWriter& plan) {
          Range heard = {Buffer::in, 0, 1};
          const std::uint32_t size = plan.size();
          bool is_last_out = rounds_min(plan.size()) % 2 == 1;
          for (std::uint32_t skip = 1; skip < size; skip *= 2, is_last_out = !is_last_out) {
            const Range next = {is_last_out ? Buffer::out : Buffer::scratch, 0, 1};
            plan.send(plan.ahead(skip), heard);
            plan.recv_reduce(plan.behind(skip), heard, next);
            heard = next;
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = rounds_min(problem.size)};
    },
    .reach = Reach::powers,
};

}  // namespace hocket::plan
