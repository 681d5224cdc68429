// Träff's circulant graph: the fewest rounds and the fewest bytes at once, at every size.
#pragma once

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

inline constexpr Algorithm circulant_all_reduce_algorithm = {
    .name = "circulant",
    .operation = Operation::all_reduce,
    .summary = "fewest bytes in few rounds, at every size; for all but the smallest vectors",
    .build =
        [](PlanWriter& plan) {
          circulant_reduce_scatter(plan);
          circulant_all_gather(plan);
        },
    .blocks_per_chunk = one_for_each_rank,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = 2ULL * rounds_min(problem.size), .blocks_sent = 2 * (problem.size - 1ULL)};
    },
    .reach = Reach::halves,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm circulant_reduce_scatter_algorithm = {
    .name = "circulant",
    .operation = Operation::reduce_scatter,
    .summary = "fewest bytes in the fewest rounds, at every size",
    .build = circulant_reduce_scatter,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = problem.size - 1U};
    },
    .allows_uneven = true,
    .reach = Reach::halves,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm circulant_all_gather_algorithm = {
    .name = "circulant",
    .operation = Operation::all_gather,
    .summary = "fewest bytes in the fewest rounds, at every size; far hops carry much",
    .build =
        [](PlanWriter& plan) {
          own_block_to_out(plan);
          circulant_all_gather(plan);
        },
    .bound = circulant_reduce_scatter_algorithm.bound,
    .allows_uneven = true,
    .only_moves = true,
    .reach = Reach::halves,
    .symmetry = Symmetry::rotated,
};

}  // namespace hocket::plan
