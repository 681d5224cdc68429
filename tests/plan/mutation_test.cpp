// Correct plans with one thing changed by chance: the proof fails, or the change did no harm.
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "plan/catalog.hpp"
#include "plan/mutate.hpp"
#include "proof/rehearsal.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using namespace hocket::proof;
using hocket::test::below;
using hocket::test::mutate;
using hocket::test::Random;

namespace {

constexpr int mutations = 12'000;

std::vector<Plan> some_plans(Random& random) {
  const Algorithm& algorithm =
      catalog()[below(static_cast<std::uint32_t>(catalog().size()), random)];
  const std::uint32_t size = 2 + below(8, random);
  Problem problem{.operation = algorithm.operation,
                  .size = size,
                  .root = has_root(algorithm.operation) ? below(size, random) : 0,
                  .pieces = 1 + below(4, random),
                  .ranks_per_host = 1 + below(4, random)};
  if (takes_contributions(algorithm) && below(4, random) > 0) {
    problem.contributions = size + below(2 * size, random);
  }
  return build_all(algorithm, problem);
}

/// Whether the results are right in many orders, apart and in place.
std::string harm(const std::vector<Plan>& plans) {
  const Problem& problem = plans.front().problem;
  if (problem.operation == Operation::barrier) return "none";  // proved by who has heard of whom
  const auto sizes = even_sizes(problem, 2 * plans.front().shape.blocks_per_chunk + 1);
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const hocket::Status status =
        rehearse(plans, {.sizes = sizes, .in_place = seed % 2 == 0, .seed = seed});
    if (!status.ok()) return std::string(status.what());
  }
  return "none";
}

}  // namespace

TEST_CASE("of thousands of mutations, each is caught or does no harm") {
  std::uint64_t seed = 0;  // another one in each run; printed when something is wrong
  hocket::random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  int caught = 0;
  int done = 0;
  for (int i = 0; done < mutations; ++i) {
    Random random(seed + static_cast<std::uint64_t>(i));
    std::vector<Plan> plans = some_plans(random);
    const std::uint32_t rank = below(plans.front().problem.size, random);
    const std::string what = mutate(plans[rank], random);
    if (what.empty()) continue;
    ++done;
    const bool is_proved = verify(plans, {.in_place = true}).ok();
    if (!is_proved) {
      ++caught;
      continue;
    }
    INFO("seed " << seed + static_cast<std::uint64_t>(i) << ": "
                 << name(plans.front().problem.operation) << " " << plans.front().algorithm
                 << " of " << plans.size() << ", rank " << rank << ": " << what);
    REQUIRE(harm(plans) == "none");
  }
  INFO(caught << " of " << mutations << " were caught");
  CHECK(caught > mutations / 10 * 9);
}
