// The same bits at every world size: an all-reduce that combines in a tree over the contributions
// which does not depend on who has them.
#pragma once

#include "plan/catalog.hpp"

namespace hocket::plan {

/// The canonical tree: of all contributions in a row, each two neighbours are combined; of what
/// comes of that, again each two neighbours; and so on until there is one. What is last in a row of
/// an odd number goes into the next row as it is.
void canonical_all_reduce(PlanWriter& plan);
[[nodiscard]] Bound canonical_bound(const Problem& problem);

inline constexpr Algorithm canonical_all_reduce_algorithm = {
    .name = "canonical",
    .operation = Operation::all_reduce,
    .summary = "as two_shot, in one order at every size; for the same bits whatever the size",
    .build = canonical_all_reduce,
    .blocks_per_chunk = one_for_each_rank,
    .bound = canonical_bound,
    .is_canonical = true,
};

}  // namespace hocket::plan
