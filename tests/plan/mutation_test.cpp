// Correct plans with one thing changed by chance: the proof fails, or the change did no harm.
#include <array>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/rng.hpp"
#include "plan/catalog.hpp"
#include "proof/describe.hpp"
#include "proof/rehearsal.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using namespace hocket::proof;
using Random = std::mt19937_64;

namespace {

constexpr int mutations = 12'000;

std::uint32_t below(std::uint32_t end, Random& random) {
  return static_cast<std::uint32_t>(random() % end);
}

std::vector<Plan> some_plans(Random& random) {
  const Algorithm& algorithm =
      catalog()[below(static_cast<std::uint32_t>(catalog().size()), random)];
  const std::uint32_t size = 2 + below(8, random);
  Problem problem{.operation = algorithm.operation,
                  .size = size,
                  .root = has_root(algorithm.operation) ? below(size, random) : 0,
                  .pieces = 1 + below(4, random),
                  .ranks_per_host = 1 + below(4, random)};
  if (algorithm.is_canonical && below(4, random) > 0) {
    problem.contributions = size + below(2 * size, random);
  }
  return build_all(algorithm, problem);
}

bool drop_dependency(Plan& plan, Step& step, Random& random) {
  if (step.after_count == 0) return false;
  const std::uint32_t dropped = below(step.after_count, random);
  std::swap(plan.after[step.after_first + dropped], plan.after[step.after_first]);
  ++step.after_first;
  --step.after_count;
  return true;
}

/// Changes one step of the plan; nothing, if chance had no better idea.
std::string mutate(Plan& plan, Random& random) {
  if (plan.steps.empty()) return {};
  const std::uint32_t number = below(static_cast<std::uint32_t>(plan.steps.size()), random);
  Step& step = plan.steps[number];
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
      step.kind = static_cast<StepKind>(below(5, random));
      break;
    case 5:
      if (!drop_dependency(plan, step, random)) return {};
      return fmt::format("dropped a dependency of step {} ({})", number, before);
    case 6:
      step.from_buffer = static_cast<Buffer>(below(3, random));
      break;
    case 7:
      step.to_buffer = static_cast<Buffer>(below(3, random));
      break;
    default: {
      // What each waits for stays at its place.
      Step& other = plan.steps[below(static_cast<std::uint32_t>(plan.steps.size()), random)];
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
