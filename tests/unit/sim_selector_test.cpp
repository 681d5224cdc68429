#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "sim/selector.hpp"
#include "sim/simulate.hpp"
#include "support/catch.hpp"

using hocket::plan::Algorithm;
using hocket::plan::Operation;
using hocket::plan::Problem;
using namespace hocket::sim;

namespace {

const Network ethernet = find_preset("ethernet-10g").value();

double simulated_seconds(const Choice& choice, Problem problem, std::uint64_t bytes) {
  problem.pieces = choice.pieces;
  const auto plans = build_all(*choice.algorithm, problem);
  return simulate(plans, ethernet, {.elements = bytes}).value().seconds;
}

}  // namespace

TEST_CASE("what is chosen is not much slower in a simulation than the best there is") {
  const Selector selector(ethernet, {});
  for (const Operation operation : hocket::plan::all_operations()) {
    for (const std::uint32_t size : {2U, 7U, 32U}) {
      for (const std::uint64_t bytes : {64U, 64'000U, 6'400'000U}) {
        const Problem problem{.operation = operation, .size = size};
        const Choice chosen = selector.choose(problem, bytes);
        double best = simulated_seconds(chosen, problem, bytes);
        std::string fastest(chosen.algorithm->name);
        for (const Algorithm& each : hocket::plan::catalog()) {
          if (each.operation != operation) continue;
          const Selector alone(ethernet, {{.algorithm = &each}});
          const double seconds = simulated_seconds(alone.choose(problem, bytes), problem, bytes);
          if (seconds < best) fastest = each.name;
          best = std::min(best, seconds);
        }
        INFO(name(operation) << ", " << size << " ranks, " << bytes << " bytes: "
                             << chosen.algorithm->name << ", where " << fastest << " is fastest");
        CHECK(simulated_seconds(chosen, problem, bytes) <= 1.5 * best);
      }
    }
  }
}

TEST_CASE("the first rule that fits is kept") {
  const Selector selector(
      ethernet,
      parse_rules("all_reduce:-1K=one_shot,all_reduce@3-=ring,broadcast=chain/16").value());
  const Problem of_two{.operation = Operation::all_reduce, .size = 2};
  const Problem of_four{.operation = Operation::all_reduce, .size = 4};
  CHECK(selector.choose(of_two, 1024).algorithm->name == "one_shot");
  CHECK(selector.choose(of_four, 1025).algorithm->name == "ring");
  CHECK(selector.choose(of_four, 1025).by_rule);
  CHECK_FALSE(selector.choose(of_two, 1025).by_rule);
  const Choice piecewise = selector.choose({.operation = Operation::broadcast, .size = 5}, 8);
  CHECK(piecewise.pieces == 16);
  CHECK(piecewise.seconds > 0);
}

TEST_CASE("where bits must be the same at every size, only what can do that is chosen") {
  const Problem problem{.operation = Operation::all_reduce, .size = 16, .contributions = 64};
  const Selector selector(ethernet, parse_rules("all_reduce=ring").value());
  CHECK(selector.choose(problem, 64).algorithm->is_canonical);
  CHECK_FALSE(selector.choose(problem, 64).by_rule);
}

TEST_CASE("where chunks differ in size, an algorithm that allows it is chosen") {
  const Problem problem{.operation = Operation::all_to_all, .size = 16};
  const Selector selector(ethernet, parse_rules("all_to_all=bruck").value());
  CHECK(selector.choose(problem, 64).algorithm->name == "bruck");
  CHECK(selector.choose(problem, 64, true).algorithm->allows_uneven);
}
