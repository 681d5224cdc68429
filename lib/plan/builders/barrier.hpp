// A barrier: nobody goes on before all have come.
#pragma once

#include "plan/builders/phases.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// In each round a rank hears of twice as many. What it has heard is in `out` and in scratch by
/// turns: were it in one place, each rank would have to hear before it could speak.
inline constexpr Algorithm dissemination_barrier_algorithm = {
    .name = "dissemination",
    .operation = Operation::barrier,
    .summary = "fewest rounds",
    .build =
        [](PlanWriter& plan) {
          Range heard = {Buffer::in, 0, 1};
          const std::uint32_t size = plan.size();
          bool is_last_out = rounds_min(plan.size()) % 2 == 1;
          for (std::uint32_t skip = 1; skip < size; skip *= 2, is_last_out = !is_last_out) {
            const Range next = {is_last_out ? Buffer::out : Buffer::scratch, 0, 1};
            plan.send(plan.ahead(skip), heard);
            plan.recv_reduce(plan.behind(skip), heard, next);
            heard = next;
          }
        },
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size), .blocks_sent = rounds_min(problem.size)};
    },
    .reach = Reach::powers,
};

}  // namespace hocket::plan
