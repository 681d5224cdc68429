// One rank does the work of all: the fewest messages that there can be, which is what counts where
// ranks share processors.
#pragma once

#include <algorithm>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// Everybody gives rank 0 all it has, and gets from it all it is to have.
inline void star(PlanWriter& plan) {
  const std::uint32_t given = blocks_of(plan.problem(), plan.shape(), plan.rank(), Buffer::in);
  const std::uint32_t wanted = blocks_of(plan.problem(), plan.shape(), plan.rank(), Buffer::out);
  if (plan.rank() != 0) {
    plan.send(0, {Buffer::in, 0, given});
    return plan.recv(0, {Buffer::out, 0, wanted});
  }
  const Range all = {wanted < given ? Buffer::scratch : Buffer::out, 0, std::max(given, wanted)};
  if (given < wanted) own_block_to_out(plan);
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    if (given < wanted) {
      plan.recv(i, {all.buffer, i, 1});
    } else {
      plan.recv_reduce(i, i == 1 ? Range{Buffer::in, 0, given} : all, all);
    }
  }
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    plan.send(i, wanted < given ? Range{all.buffer, i, 1} : all);
  }
  plan.copy({all.buffer, 0, wanted}, {Buffer::out, 0, wanted});
}

[[nodiscard]] inline Bound star_bound(const Problem& problem) {
  const Shape shape = shape_of(problem, 1);
  const std::uint64_t others = problem.size - 1U;
  const std::uint64_t given = blocks_of(problem, shape, 0, Buffer::in);
  const std::uint64_t wanted = blocks_of(problem, shape, 0, Buffer::out);
  return {.rounds = 2 * others,
          .blocks_sent = std::max(others * wanted, given),
          .hops = 2,
          .blocks_in_line = others * (given + wanted)};
}

inline constexpr Algorithm star_all_reduce_algorithm = {
    .name = "star",
    .operation = Operation::all_reduce,
    .summary = "rank 0 reduces all and answers; for small vectors where ranks share processors",
    .build = star,
    .bound = star_bound,
    .reach = Reach::star,
};

inline constexpr Algorithm star_reduce_scatter_algorithm = {
    .name = "star",
    .operation = Operation::reduce_scatter,
    .summary = "rank 0 reduces all and answers; for small vectors where ranks share processors",
    .build = star,
    .bound = star_bound,
    .allows_uneven = true,
    .reach = Reach::star,
};

inline constexpr Algorithm star_all_gather_algorithm = {
    .name = "star",
    .operation = Operation::all_gather,
    .summary = "rank 0 gathers all and answers; for small blocks where ranks share processors",
    .build = star,
    .bound = star_bound,
    .allows_uneven = true,
    .only_moves = true,
    .reach = Reach::star,
};

inline constexpr Algorithm star_barrier_algorithm = {
    .name = "star",
    .operation = Operation::barrier,
    .summary = "rank 0 waits for all and answers; where ranks share processors",
    .build = star,
    .bound = star_bound,
    .reach = Reach::star,
};

}  // namespace hocket::plan
