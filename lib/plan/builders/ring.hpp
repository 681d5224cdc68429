// Each rank sends to the next and receives from the one before: every link carries every block once
// in each direction of the work, whatever the size, but the last one is there late.
#pragma once

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

inline constexpr Algorithm ring_all_reduce_algorithm = {
    .name = "ring",
    .operation = Operation::all_reduce,
    .summary = "fewest bytes, neighbours only; for large vectors and few ranks",
    .build =
        [](PlanWriter& plan) {
          ring_reduce_scatter(plan);
          ring_all_gather(plan, {Buffer::out, plan.rank(), 1});
        },
    .blocks_per_chunk = one_for_each_rank,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = 2 * (problem.size - 1ULL), .blocks_sent = 2 * (problem.size - 1ULL)};
    },
    .reach = Reach::next,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm ring_reduce_scatter_algorithm = {
    .name = "ring",
    .operation = Operation::reduce_scatter,
    .summary = "fewest bytes, neighbours only; for large vectors and few ranks",
    .build = ring_reduce_scatter,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U};
    },
    .allows_uneven = true,
    .reach = Reach::next,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm ring_all_gather_algorithm = {
    .name = "ring",
    .operation = Operation::all_gather,
    .summary = "fewest bytes, neighbours only; for large vectors and few ranks",
    .build =
        [](PlanWriter& plan) {
          ring_all_gather(plan, {Buffer::in, 0, 1});
          own_block_to_out(plan);
        },
    .bound = ring_reduce_scatter_algorithm.bound,
    .allows_uneven = true,
    .only_moves = true,
    .reach = Reach::next,
    .symmetry = Symmetry::rotated,
};

}  // namespace hocket::plan
