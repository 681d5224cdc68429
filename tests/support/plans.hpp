// Plans of whole worlds, for tests.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/catalog.hpp"

namespace hocket::test {

inline std::vector<plan::Plan> plans_of(const plan::Algorithm& algorithm,
                                        const plan::Problem& problem) {
  std::vector<plan::Plan> plans;
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
    plans.push_back(plan::build(algorithm, problem, rank));
  }
  return plans;
}

/// By name, which must be in the catalog.
inline std::vector<plan::Plan> plans_of(plan::Operation operation, std::string_view name,
                                        std::uint32_t size) {
  return plans_of(*plan::find_algorithm(operation, name), {.operation = operation, .size = size});
}

}  // namespace hocket::test
