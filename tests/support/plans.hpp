// Plans of a whole world, for tests.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/catalog.hpp"

namespace hocket::test {

/// By name, which must be in the catalog.
inline std::vector<plan::Plan> plans_of(plan::Operation operation, std::string_view name,
                                        std::uint32_t size) {
  return plan::build_all(*plan::find_algorithm(operation, name),
                         {.operation = operation, .size = size});
}

}  // namespace hocket::test
