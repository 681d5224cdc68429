// Binomial trees: in every round the ranks that have it, or are in it, double.
#pragma once

#include <algorithm>
#include <bit>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

inline constexpr Algorithm binomial_broadcast_algorithm = {
    .name = "binomial",
    .operation = Operation::broadcast,
    .summary = "fewest rounds, all bytes in each; for small vectors",
    .build =
        [](PlanWriter& plan) {
          Range held = {Buffer::out, 0, 1};
          if (from_root(plan) == 0) {
            held = {Buffer::in, 0, 1};
            plan.copy(held, {Buffer::out, 0, 1});
          }
          binomial_broadcast(plan, Team(plan), plan.problem().root, held);
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = rounds_min(problem.size)};
    },
    .only_moves = true,
    .reach = Reach::powers,
};

inline constexpr Algorithm binomial_reduce_algorithm = {
    .name = "binomial",
    .operation = Operation::reduce,
    .summary = "fewest rounds, all bytes in each; for small vectors",
    .build =
        [](PlanWriter& plan) {
          const Buffer sums = from_root(plan) == 0 ? Buffer::out : Buffer::scratch;
          binomial_reduce(plan, Team(plan), plan.problem().root, {Buffer::in, 0, 1}, {sums, 0, 1});
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = problem.size > 1 ? 1U : 0U};
    },
    .reach = Reach::powers,
};

/// What the rank with the largest subtree but the root's sends up.
[[nodiscard]] constexpr std::uint64_t gathered_blocks(std::uint32_t size) noexcept {
  const std::uint32_t highest = std::bit_ceil(size) / 2;  // the greatest distance of a child
  return size > 1 ? std::max(size - highest, highest / 2) : 0;
}

inline constexpr Algorithm binomial_gather_algorithm = {
    .name = "binomial",
    .operation = Operation::gather,
    .summary = "fewest rounds, blocks travel several times; for small blocks",
    .build =
        [](PlanWriter& plan) {
          binomial_gather(plan, from_root(plan) == 0 ? Buffer::out : Buffer::scratch,
                          {Buffer::in, 0, 1});
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = gathered_blocks(problem.size)};
    },
    .allows_uneven = true,
    .reach = Reach::subtrees,
};

inline constexpr Algorithm binomial_scatter_algorithm = {
    .name = "binomial",
    .operation = Operation::scatter,
    .summary = "fewest rounds, blocks travel several times; for small blocks",
    .build =
        [](PlanWriter& plan) {
          binomial_scatter(plan, from_root(plan) == 0 ? Buffer::in : Buffer::scratch,
                           {Buffer::out, 0, 1});
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = problem.size - 1U};
    },
    .allows_uneven = true,
    .reach = Reach::subtrees,
};

inline constexpr Algorithm scatter_all_gather_broadcast_algorithm = {
    .name = "scatter_all_gather",
    .operation = Operation::broadcast,
    .summary = "each rank gets a part and gives it to all; for large vectors that have no pieces",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t all = plan.size();
          const Buffer held = from_root(plan) == 0 ? Buffer::in : Buffer::out;
          binomial_scatter(plan, held, {held, plan.rank(), 1});
          if (held == Buffer::in) plan.copy({held, 0, all}, {Buffer::out, 0, all});
          circulant_all_gather(plan);
        },
    .blocks_per_chunk = one_for_each_rank,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = 2ULL * rounds_min(problem.size), .blocks_sent = 2 * (problem.size - 1ULL)};
    },
    .only_moves = true,
    .reach = Reach::halves,
};

inline constexpr Algorithm reduce_scatter_gather_reduce_algorithm = {
    .name = "reduce_scatter_gather",
    .operation = Operation::reduce,
    .summary = "each rank reduces a part and gives it to the root; for large vectors",
    .build =
        [](PlanWriter& plan) {
          circulant_reduce_scatter(plan);
          const Partials partials = partials_of(plan);
          binomial_gather(plan, partials.buffer, partials.result);
        },
    .blocks_per_chunk = one_for_each_rank,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = 2ULL * rounds_min(problem.size),
              .blocks_sent = problem.size - 1 + gathered_blocks(problem.size),
              .blocks_in_line = 2 * (problem.size - 1ULL)};
    },
    .reach = Reach::halves,
};

}  // namespace hocket::plan
