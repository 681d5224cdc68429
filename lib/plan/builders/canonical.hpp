// Reductions in one tree, which does not depend on who has what: the same bits at every world size,
// and the order of the ranks, for ops that are not commutative.
#pragma once

#include "plan/catalog.hpp"

namespace hocket::plan {

/// The canonical tree: of all contributions in a row, each two neighbours are combined; of what
/// comes of that, again each two neighbours; and so on until there is one. What is last in a row of
/// an odd number goes into the next row as it is.
void canonical_all_reduce(PlanWriter& plan);
void canonical_reduce_scatter(PlanWriter& plan);
void canonical_reduce(PlanWriter& plan);
[[nodiscard]] Bound canonical_bound(const Problem& problem);

inline constexpr Algorithm canonical_all_reduce_algorithm = {
    .name = "canonical",
    .operation = Operation::all_reduce,
    .summary = "as two_shot, in one order at every size; for the same bits whatever the size",
    .build = canonical_all_reduce,
    .blocks_per_chunk = one_for_each_rank,
    .bound = canonical_bound,
    .is_canonical = true,
    .keeps_order = true,
};

inline constexpr Algorithm canonical_reduce_scatter_algorithm = {
    .name = "canonical",
    .operation = Operation::reduce_scatter,
    .summary = "as direct, in the order of the ranks; for ops that are not commutative",
    .build = canonical_reduce_scatter,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
    },
    .allows_uneven = true,
    .is_canonical = true,
    .keeps_order = true,
};

inline constexpr Algorithm canonical_reduce_algorithm = {
    .name = "canonical",
    .operation = Operation::reduce,
    .summary =
        "each rank reduces a part, in the order of the ranks, and gives it to the root; for "
        "ops that are not commutative",
    .build = canonical_reduce,
    .blocks_per_chunk = one_for_each_rank,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = 2 * (problem.size - 1ULL), .blocks_sent = problem.size, .hops = 2};
    },
    .is_canonical = true,
    .keeps_order = true,
};

}  // namespace hocket::plan
