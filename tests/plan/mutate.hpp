// One thing of a plan changed by chance.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "plan/plan.hpp"
#include "proof/describe.hpp"

namespace hocket::test {

using Random = std::mt19937_64;

inline std::uint32_t below(std::uint32_t end, Random& random) {
  return static_cast<std::uint32_t>(random() % end);
}

inline bool drop_dependency(plan::Plan& plan, plan::Step& step, Random& random) {
  if (step.after_count == 0) return false;
  const std::uint32_t dropped = below(step.after_count, random);
  std::swap(plan.after[step.after_first + dropped], plan.after[step.after_first]);
  ++step.after_first;
  --step.after_count;
  return true;
}

/// Changes one step of the plan; nothing, if chance had no better idea.
inline std::string mutate(plan::Plan& plan, Random& random) {
  if (plan.steps.empty()) return {};
  const std::uint32_t number = below(static_cast<std::uint32_t>(plan.steps.size()), random);
  plan::Step& step = plan.steps[number];
  const std::string before = describe(step);
  const std::uint32_t vector = plan.shape.vector_blocks();
  switch (below(9, random)) {
    case 0:
      step.peer = below(plan.problem.size, random);
      break;
    case 1:
      step.from = (step.from + 1) % vector;
      break;
    case 2:
      step.to = (step.to + 1 + below(vector, random)) % vector;
      break;
    case 3:
      step.count -= step.count > 1 ? 1 : 0;
      break;
    case 4:
      step.kind = static_cast<plan::StepKind>(below(5, random));
      break;
    case 5:
      if (!drop_dependency(plan, step, random)) return {};
      return fmt::format("dropped a dependency of step {} ({})", number, before);
    case 6:
      step.from_buffer = static_cast<plan::Buffer>(below(3, random));
      break;
    case 7:
      step.to_buffer = static_cast<plan::Buffer>(below(3, random));
      break;
    default: {
      // What each waits for stays at its place.
      plan::Step& other = plan.steps[below(static_cast<std::uint32_t>(plan.steps.size()), random)];
      std::swap(step, other);
      std::swap(step.after_first, other.after_first);
      std::swap(step.after_count, other.after_count);
      if (describe(step) == before) return {};
      return fmt::format("exchanged step {} ({}) with {}", number, before, describe(step));
    }
  }
  if (describe(step) == before) return {};
  return fmt::format("step {} ({}) became {}", number, before, describe(step));
}

}  // namespace hocket::test
