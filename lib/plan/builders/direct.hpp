// Every rank talks to every other: few steps one behind the other where a rank can do many things
// at once, as over shared memory.
#pragma once

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

inline constexpr Algorithm direct_all_to_all_algorithm = {
    .name = "pairwise",
    .operation = Operation::all_to_all,
    .summary = "each block goes straight to its rank; for all but small blocks",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t rank = plan.rank();
          plan.copy({Buffer::in, rank, 1}, {Buffer::out, rank, 1});
          for (std::uint32_t i = 1; i < plan.size(); ++i) {
            const std::uint32_t to = plan.ahead(i);
            const std::uint32_t from = plan.behind(i);
            plan.send(to, {Buffer::in, to, 1});
            plan.recv(from, {Buffer::out, from, 1});
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
    },
    .allows_uneven = true,
    .only_moves = true,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm direct_all_gather_algorithm = {
    .name = "direct",
    .operation = Operation::all_gather,
    .summary = "each rank sends its block to every other; for few ranks",
    .build =
        [](PlanWriter& plan) {
          direct_all_gather(plan, {Buffer::in, 0, 1});
          own_block_to_out(plan);
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
    },
    .allows_uneven = true,
    .only_moves = true,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm direct_reduce_scatter_algorithm = {
    .name = "direct",
    .operation = Operation::reduce_scatter,
    .summary = "each rank sends every other its block; for few ranks",
    .build = direct_reduce_scatter,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
    },
    .allows_uneven = true,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm two_shot_all_reduce_algorithm = {
    .name = "two_shot",
    .operation = Operation::all_reduce,
    .summary = "each rank reduces a part and gives it to all; for few ranks on one host",
    .build =
        [](PlanWriter& plan) {
          direct_reduce_scatter(plan);
          direct_all_gather(plan, {Buffer::out, plan.rank(), 1});
        },
    .blocks_per_chunk = one_for_each_rank,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = 2 * (problem.size - 1U), .blocks_sent = 2 * (problem.size - 1U), .hops = 2};
    },
    .symmetry = Symmetry::rotated,
};

/// All reduce in the order of the ranks, so that all get the same bits.
inline constexpr Algorithm one_shot_all_reduce_algorithm = {
    .name = "one_shot",
    .operation = Operation::all_reduce,
    .summary = "each rank gives all it has to all; for tiny vectors of few ranks on one host",
    .build =
        [](PlanWriter& plan) {
          // Scratch: copy i is what rank i has, and copy 0 then the sum.
          plan.copy({Buffer::in, 0, 1}, {Buffer::scratch, plan.rank(), 1});
          for (std::uint32_t i = 1; i < plan.size(); ++i) {
            plan.send(plan.ahead(i), {Buffer::in, 0, 1});
            const std::uint32_t from = plan.behind(i);
            plan.recv(from, {Buffer::scratch, from, 1});
          }
          plan.join();
          for (std::uint32_t i = 1; i < plan.size(); ++i) {
            plan.reduce({Buffer::scratch, i, 1}, {Buffer::scratch, 0, 1});
          }
          plan.copy({Buffer::scratch, 0, 1}, {Buffer::out, 0, 1});
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
    },
    .symmetry = Symmetry::rotated_then_same,
};

inline constexpr Algorithm direct_gather_algorithm = {
    .name = "direct",
    .operation = Operation::gather,
    .summary = "each rank sends its block to the root; for large blocks",
    .build =
        [](PlanWriter& plan) {
          if (plan.rank() != plan.problem().root) {
            plan.send(plan.problem().root, {Buffer::in, 0, 1});
            return;
          }
          own_block_to_out(plan);
          for (std::uint32_t i = 1; i < plan.size(); ++i) {
            plan.recv(plan.ahead(i), {Buffer::out, plan.ahead(i), 1});
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size > 1 ? 1U : 0U, .hops = 1};
    },
    .allows_uneven = true,
    .only_moves = true,
};

inline constexpr Algorithm direct_scatter_algorithm = {
    .name = "direct",
    .operation = Operation::scatter,
    .summary = "the root sends each rank its block; for large blocks",
    .build =
        [](PlanWriter& plan) {
          if (plan.rank() != plan.problem().root) {
            plan.recv(plan.problem().root, {Buffer::out, 0, 1});
            return;
          }
          plan.copy({Buffer::in, plan.rank(), 1}, {Buffer::out, 0, 1});
          for (std::uint32_t i = 1; i < plan.size(); ++i) {
            plan.send(plan.ahead(i), {Buffer::in, plan.ahead(i), 1});
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
    },
    .allows_uneven = true,
    .only_moves = true,
};

}  // namespace hocket::plan
