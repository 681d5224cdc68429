// Plans of ranks in another order than their own solve the same problem.
#include "plan/renumber.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "plan/catalog.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using hocket::proof::verify;

namespace {

using Order = std::vector<std::uint32_t>;

/// Round robin over two hosts, backwards, and two that change places.
std::vector<Order> orders(std::uint32_t size) {
  Order in_turns(size);
  for (std::uint32_t i = 0; i < size; ++i) {
    const std::uint32_t half = (size + 1) / 2;
    in_turns[i] = i < half ? 2 * i : 2 * (i - half) + 1;
  }
  Order backwards(size);
  std::iota(backwards.rbegin(), backwards.rend(), 0U);
  Order swapped(size);
  std::iota(swapped.begin(), swapped.end(), 0U);
  std::swap(swapped.front(), swapped[size / 2]);
  return {in_turns, backwards, swapped};
}

std::vector<Plan> renumbered(const Algorithm& algorithm, const Problem& problem,
                             const Order& order) {
  std::vector<Plan> plans = build_all(algorithm, problem);
  for (Plan& each : plans) renumber(each, order);
  std::ranges::sort(plans, {}, &Plan::rank);
  return plans;
}

}  // namespace

TEST_CASE("plans on whole vectors are right in any order of the ranks") {
  std::size_t worlds = 0;
  for (const Algorithm& algorithm : catalog()) {
    if (!is_of_whole_vectors(algorithm.operation)) continue;
    for (std::uint32_t size = 2; size <= 7; ++size) {
      for (const std::uint32_t per_host : {1U, 2U, 3U}) {
        for (const std::uint32_t root : {0U, size / 2}) {
          const Problem problem = {.operation = algorithm.operation,
                                   .size = size,
                                   .root = root,
                                   .ranks_per_host = per_host};
          const bool is_new = per_host == 1 || algorithm.knows_hosts;
          const bool has_that_root = root == 0 || has_root(algorithm.operation);
          if (!is_new || !has_that_root || !can_solve(algorithm, problem)) continue;
          for (const Order& order : orders(size)) {
            const std::vector<Plan> plans = renumbered(algorithm, problem, order);
            CAPTURE(algorithm.name, size, per_host, root, order);
            const auto proof = verify(plans);
            CAPTURE(proof.status().to_string());
            REQUIRE(proof.ok());
            if (has_root(algorithm.operation)) REQUIRE(plans[0].problem.root == order[root]);
            ++worlds;
          }
        }
      }
    }
  }
  REQUIRE(worlds > 100);
}

TEST_CASE("one rank that is not renumbered is noticed") {
  const Algorithm& ring = *find_algorithm(Operation::all_reduce, "ring");
  const Problem problem = {.operation = Operation::all_reduce, .size = 4};
  const Order order = {0, 2, 1, 3};
  std::vector<Plan> plans = renumbered(ring, problem, order);
  plans[2] = build(ring, problem, 2);
  REQUIRE_FALSE(verify(plans).ok());
}
