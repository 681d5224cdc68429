// Made-up operations over the simulated fabric, with every algorithm there is.
#include <cstdint>

#include "sim/sim_run.hpp"
#include "support/catch.hpp"
#include "support/seeds.hpp"

namespace hocket::testing {
namespace {

void run_seeds(std::uint64_t first, std::uint64_t count, bool is_deadly) {
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const auto failure = run_simulated({.seed = seed, .is_deadly = is_deadly});
    INFO(failure.value_or(""));
    REQUIRE_FALSE(failure.has_value());
  }
}

TEST_CASE("operations are right in rough worlds") { run_seeds(1, 200, false); }

TEST_CASE("operations are right or fail where ranks die") { run_seeds(1, 200, true); }

TEST_CASE("operations are right in new worlds", "[new_worlds]") {
  run_seeds(fresh_seed(), runs_or(1000), false);
}

TEST_CASE("operations are right or fail where ranks die in new worlds", "[new_worlds]") {
  run_seeds(fresh_seed(), runs_or(1000), true);
}

}  // namespace
}  // namespace hocket::testing
