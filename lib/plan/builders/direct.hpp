// Every rank talks to every other: few steps one behind the other where a rank can do many things
// at once, as over shared memory. Or all talk to one, which does the work of all (star): the fewest
// messages that there can be, which is what counts where ranks share processors.
#pragma once

#include <algorithm>

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

[[nodiscard]] constexpr Bound direct_bound(const Problem& problem) noexcept {
  return {.rounds = problem.size - 1U, .blocks_sent = problem.size - 1U, .hops = 1};
}

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
    .bound = direct_bound,
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
    .bound = direct_bound,
    .allows_uneven = true,
    .only_moves = true,
    .symmetry = Symmetry::rotated,
};

inline constexpr Algorithm direct_reduce_scatter_algorithm = {
    .name = "direct",
    .operation = Operation::reduce_scatter,
    .summary = "each rank sends every other its block; for few ranks",
    .build = direct_reduce_scatter,
    .bound = direct_bound,
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
      return {
          .rounds = 2 * (problem.size - 1ULL), .blocks_sent = 2 * (problem.size - 1ULL), .hops = 2};
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
    .bound = direct_bound,
    .keeps_order = true,
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
    .bound = direct_bound,
    .allows_uneven = true,
    .only_moves = true,
};

/// Everybody gives rank 0 all it has, and gets from it all it is to have.
inline void star(PlanWriter& plan) {
  const std::uint32_t given = blocks_of(plan.problem(), plan.shape(), plan.rank(), Buffer::in);
  const std::uint32_t wanted = blocks_of(plan.problem(), plan.shape(), plan.rank(), Buffer::out);
  if (plan.rank() != 0) {
    plan.send(0, {Buffer::in, 0, given});
    return plan.recv(0, {Buffer::out, 0, wanted});
  }
  const Range all = {wanted < given ? Buffer::scratch : Buffer::out, 0, std::max(given, wanted)};
  const bool gathers = given < wanted;
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    if (gathers) plan.recv(i, {all.buffer, i, 1});
    if (!gathers) plan.recv_reduce(i, i == 1 ? Range{Buffer::in, 0, given} : all, all);
  }
  if (gathers) plan.join();  // else each send would wait for each receive
  if (gathers) own_block_to_out(plan);
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
    .keeps_order = true,
    .reach = Reach::star,
};

inline constexpr Algorithm star_reduce_scatter_algorithm = {
    .name = "star",
    .operation = Operation::reduce_scatter,
    .summary = "rank 0 reduces all and answers; for small vectors where ranks share processors",
    .build = star,
    .bound = star_bound,
    .allows_uneven = true,
    .keeps_order = true,
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
