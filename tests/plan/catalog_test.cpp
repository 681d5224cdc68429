// Every algorithm at every small size, with every root, in pieces, and in place.
#include "plan/catalog.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "proof/rehearsal.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using namespace hocket::proof;

namespace {

/// None, a few more than ranks, and many times as many.
std::uint32_t contributions(std::uint32_t size, std::uint32_t pieces) {
  return (pieces - 1) * size + pieces / 2;
}

template <class Check>
void for_each_problem(const Algorithm& algorithm, std::uint32_t size_max, Check check) {
  for (std::uint32_t size = 1; size <= size_max; ++size) {
    const std::uint32_t roots = has_root(algorithm.operation) ? size : 1;
    for (std::uint32_t root = 0; root < roots; ++root) {
      for (const std::uint32_t pieces : {1U, 2U, 7U}) {
        check(Problem{
            .operation = algorithm.operation,
            .size = size,
            .root = root,
            .pieces = pieces,
            .ranks_per_host = 1 + (size + root + pieces) % 5,
            .contributions = takes_contributions(algorithm) ? contributions(size, pieces) : 0});
      }
    }
  }
}

std::string title(const Algorithm& algorithm, const Problem& problem) {
  return fmt::format("{} {}, {} ranks, root {}, {} pieces, {} ranks a host, {} contributions",
                     name(algorithm.operation), algorithm.name, problem.size, problem.root,
                     problem.pieces, problem.ranks_per_host, problem.contributions);
}

/// Where a buffer's block is in the vector, if in and out are in place.
std::uint32_t place(const Plan& plan, Buffer buffer, std::uint32_t block) {
  return place_in_vector(plan.problem, plan.shape, plan.rank, buffer) + block;
}

/// Whether a rank's processor has something to do with the memory of a step, as windows of device
/// memory have that: in place, and in an all-to-all a rank has nothing for itself.
bool touches_memory(const Plan& plan, const Step& step) {
  const bool has_scratch = (step.has_source() && step.from_buffer == Buffer::scratch) ||
                           (step.has_target() && step.to_buffer == Buffer::scratch);
  if (has_scratch || step.combines()) return true;
  if (step.kind != StepKind::copy) return false;
  const bool is_in_out = step.from_buffer == Buffer::in && step.to_buffer == Buffer::out;
  if (!is_in_out || plan.problem.operation == Operation::all_to_all) {
    const std::uint32_t blocks = plan.shape.blocks_per_chunk;
    const bool is_for_itself = step.from / blocks == plan.rank && step.to / blocks == plan.rank &&
                               step.from % blocks + step.count <= blocks;
    return !is_in_out || !is_for_itself;
  }
  return !can_be_in_place(plan.problem) ||
         place(plan, Buffer::in, step.from) != place(plan, Buffer::out, step.to);
}

bool touches_memory(const Plan& plan) {
  return std::ranges::any_of(plan.steps,
                             [&](const Step& step) { return touches_memory(plan, step); });
}

}  // namespace

TEST_CASE("names are found, and no two rows have one") {
  std::set<std::pair<Operation, std::string_view>> seen;
  for (const Algorithm& each : catalog()) {
    CHECK(seen.emplace(each.operation, each.name).second);
    CHECK(find_algorithm(each.operation, each.name) == &each);
  }
  CHECK(find_algorithm(Operation::all_reduce, "rign") == nullptr);
  for (const Operation operation : all_operations()) {
    INFO(name(operation));
    CHECK(std::ranges::count(catalog(), operation, &Algorithm::operation) > 0);
  }
}

TEST_CASE("every algorithm is proved, and costs what its bound says") {
  for (const Algorithm& algorithm : catalog()) {
    for_each_problem(algorithm, 33, [&](const Problem& problem) {
      INFO(title(algorithm, problem));
      const auto plans = build_all(algorithm, problem);
      const auto proof = verify(plans, {.in_place = true, .order = algorithm.keeps_order});
      REQUIRE(proof.status().to_string() == "ok");
      REQUIRE(check_promises(algorithm, problem, *proof).to_string() == "ok");
    });
  }
}

TEST_CASE("every reduction has an algorithm that keeps the order of the ranks") {
  for (const Operation operation : all_operations()) {
    INFO(name(operation));
    const bool keeps = std::ranges::any_of(catalog(), [&](const Algorithm& each) {
      return each.operation == operation && each.keeps_order;
    });
    CHECK(keeps == reduces(operation));
  }
}

TEST_CASE("an operand on the wrong side breaks the order") {
  for (const Algorithm& algorithm : catalog()) {
    if (!algorithm.keeps_order) continue;
    for_each_problem(algorithm, 9, [&](const Problem& problem) {
      auto plans = build_all(algorithm, problem);
      for (Plan& plan : plans) {
        for (Step& step : plan.steps) {
          if (!step.combines()) continue;
          step.is_reversed = !step.is_reversed;
          const auto proof = verify(plans, {.order = true});
          INFO(title(algorithm, problem) << ", rank " << plan.rank);
          REQUIRE(proof.ok());
          REQUIRE(check_promises(algorithm, problem, *proof).code() ==
                  hocket::StatusCode::mismatch);
          step.is_reversed = !step.is_reversed;
        }
      }
    });
  }
}

TEST_CASE("algorithms that do not say so break the order") {
  for (const Algorithm& algorithm : catalog()) {
    if (algorithm.keeps_order || !reduces(algorithm.operation)) continue;
    bool breaks = false;
    for_each_problem(algorithm, 6, [&](const Problem& problem) {
      const auto proof = verify(build_all(algorithm, problem), {.order = true});
      breaks = breaks || (proof.ok() && proof->breaks_order);
    });
    INFO(name(algorithm.operation) << " by " << algorithm.name);
    CHECK(breaks);
  }
}

TEST_CASE("algorithms that only move touch no memory, and all others do") {
  for (const Algorithm& algorithm : catalog()) {
    bool touches = false;
    for_each_problem(algorithm, 20, [&](const Problem& problem) {
      if (problem.size == 1) return;
      for (const Plan& plan : build_all(algorithm, problem)) {
        INFO(title(algorithm, problem) << ", rank " << plan.rank);
        if (algorithm.only_moves) REQUIRE_FALSE(touches_memory(plan));
        touches = touches || touches_memory(plan);
      }
    });
    INFO(name(algorithm.operation) << " by " << algorithm.name);
    CHECK(touches != algorithm.only_moves);
  }
}

TEST_CASE("a plan takes memory in proportion to its steps") {
  for (const Algorithm& algorithm : catalog()) {
    for (const std::uint32_t size : {64U, 500U, 2048U}) {
      const Problem problem{.operation = algorithm.operation, .size = size, .ranks_per_host = 8};
      for (const std::uint32_t rank : {0U, size / 2}) {
        INFO(title(algorithm, problem) << ", rank " << rank);
        const Plan plan = build(algorithm, problem, rank);
        const std::size_t bytes =
            plan.steps.capacity() * sizeof(Step) + plan.after.capacity() * sizeof plan.after[0];
        CHECK(bytes <= 100 * plan.steps.size());
      }
    }
  }
}

TEST_CASE("every algorithm gives the right numbers, whatever happens first") {
  for (const Algorithm& algorithm : catalog()) {
    if (algorithm.operation == Operation::barrier) continue;
    std::uint64_t seed = 1;
    for_each_problem(algorithm, 9, [&](const Problem& problem) {
      const std::uint64_t size = problem.size;
      for (const std::uint64_t count :
           {std::uint64_t{0}, std::uint64_t{1}, size - 1, size, size + 1, std::uint64_t{47}}) {
        INFO(title(algorithm, problem) << ", " << count << " elements, seed " << seed);
        const auto sizes = algorithm.allows_uneven && seed % 2 == 0 ? uneven_sizes(problem, count)
                                                                    : even_sizes(problem, count);
        const hocket::Status status =
            rehearse(build_all(algorithm, problem),
                     {.sizes = sizes, .in_place = seed % 3 == 0, .seed = seed});
        REQUIRE(status.to_string() == "ok");
        ++seed;
      }
    });
  }
}

TEST_CASE("what algorithms promise holds for any number of pieces") {
  for (const Algorithm& algorithm : catalog()) {
    for (std::uint32_t size = 2; size <= 40; ++size) {
      for (std::uint32_t pieces = 1; pieces <= 12; ++pieces) {
        const Problem problem = {.operation = algorithm.operation, .size = size, .pieces = pieces};
        if (pieces > 1 && algorithm.blocks_per_chunk(problem) ==
                              algorithm.blocks_per_chunk({.size = size, .pieces = 1})) {
          break;
        }
        INFO(name(algorithm.operation)
             << " by " << algorithm.name << ", " << size << " ranks, " << pieces << " pieces");
        const auto proof =
            Verifier().build_and_verify(algorithm, problem, {.uneven = algorithm.allows_uneven});
        REQUIRE(proof.status().to_string() == "ok");
        REQUIRE(check_promises(algorithm, problem, *proof).to_string() == "ok");
      }
    }
  }
}
