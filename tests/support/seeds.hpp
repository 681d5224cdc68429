// New seeds each time, for tests that make up what they do. A test that fails prints its seed;
// TEST_SEED repeats it, and TEST_RUNS says how many are tried.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/environment.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"

namespace hocket::testing {

[[nodiscard]] inline std::uint64_t environment_or(const char* variable, std::uint64_t otherwise) {
  const auto given = parse_integer(process_environment().get(variable));
  return given ? static_cast<std::uint64_t>(*given) : otherwise;
}

/// The first of a row of seeds.
[[nodiscard]] inline std::uint64_t fresh_seed() {
  std::uint32_t seed = 0;
  random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  return environment_or("TEST_SEED", seed);
}

/// Of a test that usually makes so many.
[[nodiscard]] inline std::uint64_t runs_or(std::uint64_t usual) {
  return environment_or("TEST_RUNS", environment_or("TEST_SEED", 0) != 0 ? 1 : usual);
}

}  // namespace hocket::testing
