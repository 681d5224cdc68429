#include "plan/renumber.hpp"

namespace hocket::plan {

void renumber(Plan& plan, std::span<const std::uint32_t> ranks) noexcept {
  plan.rank = ranks[plan.rank];
  if (has_root(plan.problem.operation)) plan.problem.root = ranks[plan.problem.root];
  for (Step& step : plan.steps) {
    if (step.communicates()) step.peer = ranks[step.peer];
  }
}

}  // namespace hocket::plan
