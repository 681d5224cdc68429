// The walk-through's algorithm: the root sends to each rank, one after the other.
#pragma once

#include "plan/catalog.hpp"

namespace hocket::plan {

inline constexpr Algorithm star_broadcast_algorithm = {
    .name = "star",
    .operation = Operation::broadcast,
    .summary = "the root sends to each rank; a toy",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t root = plan.problem().root;
          if (plan.rank() != root) return plan.recv(root, {Buffer::out, 0, 1});
          plan.copy({Buffer::in, 0, 1}, {Buffer::out, 0, 1});
          for (std::uint32_t i = 1; i < plan.size(); ++i) {
            plan.send(plan.ahead(i), {Buffer::in, 0, 1});
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 1, .blocks_sent = problem.size - 1};
    },
};

}  // namespace hocket::plan
