// Binomial trees: in every round the ranks that have it, or are in it, double.
#pragma once

#include <algorithm>
#include <bit>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// How far from the root a rank is, around the ring.
[[nodiscard]] inline std::uint32_t from_root(const PlanWriter& plan) noexcept {
  return plan.behind(plan.problem().root);
}

/// How many ranks, from the one that is so far from the root on, are below it in the tree.
[[nodiscard]] constexpr std::uint32_t subtree_of(std::uint32_t distance,
                                                 std::uint32_t size) noexcept {
  const std::uint32_t all = size - distance;
  return distance == 0 ? all : std::min(all, distance & (~distance + 1));
}

inline constexpr Algorithm binomial_broadcast_algorithm = {
    .name = "binomial",
    .operation = Operation::broadcast,
    .summary = "fewest rounds, all bytes in each; for small vectors",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t distance = from_root(plan);
          const std::uint32_t size = plan.size();
          Range held = {Buffer::out, 0, 1};
          if (distance == 0) {
            held = {Buffer::in, 0, 1};
            plan.copy(held, {Buffer::out, 0, 1});
          }
          for (std::uint32_t skip = 1; skip < size; skip *= 2) {
            if (distance >= skip && distance < 2 * skip) {
              plan.recv(plan.behind(skip), held);
            } else if (distance < skip && distance + skip < size) {
              plan.send(plan.ahead(skip), held);
            }
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = rounds_min(problem.size)};
    },
};

inline constexpr Algorithm binomial_reduce_algorithm = {
    .name = "binomial",
    .operation = Operation::reduce,
    .summary = "fewest rounds, all bytes in each; for small vectors",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t distance = from_root(plan);
          const std::uint32_t size = plan.size();
          const Range sum = {distance == 0 ? Buffer::out : Buffer::scratch, 0, 1};
          Range held = {Buffer::in, 0, 1};
          for (std::uint32_t skip = std::bit_ceil(size) / 2; skip > 0; skip /= 2) {
            if (distance >= skip && distance < 2 * skip) {
              plan.send(plan.behind(skip), held);
            } else if (distance < skip && distance + skip < size) {
              plan.recv_reduce(plan.ahead(skip), held, sum);
              held = sum;
            }
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = problem.size > 1 ? 1U : 0U};
    },
};

inline constexpr Algorithm binomial_gather_algorithm = {
    .name = "binomial",
    .operation = Operation::gather,
    .summary = "fewest rounds, blocks travel several times; for small blocks",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t distance = from_root(plan);
          const std::uint32_t subtree = subtree_of(distance, plan.size());
          const std::uint32_t rank = plan.rank();
          const Buffer held = distance == 0 ? Buffer::out : Buffer::scratch;
          if (subtree == 1) {
            return plan.send(plan.behind(distance & (~distance + 1)), {Buffer::in, 0, 1});
          }
          plan.copy({Buffer::in, 0, 1}, {held, rank, 1});
          for (std::uint32_t skip = 1; skip < subtree; skip *= 2) {
            const std::uint32_t there = plan.ahead(skip);
            plan.recv(there, {held, there, subtree_of(distance + skip, plan.size())});
          }
          if (distance == 0) return;
          plan.send(plan.behind(distance & (~distance + 1)), {held, rank, subtree});
        },
    .bound = [](const Problem& problem) -> Bound {
      const std::uint32_t size = problem.size;
      const std::uint32_t highest =
          std::bit_ceil(size) / 2;  // the distance with the largest subtree
      return {.rounds = rounds_min(problem.size),
              .blocks_sent = size > 1 ? std::max(size - highest, highest / 2) : 0};
    },
    .allows_uneven = true,
};

inline constexpr Algorithm binomial_scatter_algorithm = {
    .name = "binomial",
    .operation = Operation::scatter,
    .summary = "fewest rounds, blocks travel several times; for small blocks",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t distance = from_root(plan);
          const std::uint32_t subtree = subtree_of(distance, plan.size());
          const std::uint32_t rank = plan.rank();
          const Buffer held = distance == 0 ? Buffer::in : Buffer::scratch;
          const std::uint32_t parent = plan.behind(distance & (~distance + 1));
          if (subtree == 1) return plan.recv(parent, {Buffer::out, 0, 1});
          if (distance > 0) plan.recv(parent, {held, rank, subtree});
          for (std::uint32_t skip = std::bit_ceil(subtree) / 2; skip > 0; skip /= 2) {
            const std::uint32_t there = plan.ahead(skip);
            plan.send(there, {held, there, subtree_of(distance + skip, plan.size())});
          }
          plan.copy({held, rank, 1}, {Buffer::out, 0, 1});
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = problem.size - 1U};
    },
    .allows_uneven = true,
};

}  // namespace hocket::plan
