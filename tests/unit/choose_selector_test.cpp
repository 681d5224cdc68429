#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "choose/selector.hpp"
#include "simulator/simulate.hpp"
#include "support/catch.hpp"

namespace hocket::choose {

using hocket::plan::Operation;
using hocket::plan::Problem;
using hocket::plan::Reach;

namespace {

const Network ten_gigabit = find_preset("ethernet-10g").value();

double simulated_seconds(const Choice& choice, Problem problem, std::uint64_t bytes,
                         const Network& network) {
  problem.pieces = choice.pieces;
  const auto plans = build_all(*choice.algorithm, problem);
  return hocket::sim::simulate(plans, network, {.elements = bytes}).value().seconds;
}

/// Not much slower in a simulation than the best there is.
void check_choice(const Problem& problem, std::uint64_t bytes, const Network& network) {
  const Selector selector(network, {});
  const Choice chosen = selector.choose(problem, bytes);
  const double seconds = simulated_seconds(chosen, problem, bytes, network);
  double best = seconds;
  std::string fastest(chosen.algorithm->name);
  for (const Choice& each : selector.candidates(problem, bytes)) {
    const double other = simulated_seconds(each, problem, bytes, network);
    if (other < best) fastest = each.algorithm->name;
    best = std::min(best, other);
  }
  INFO(name(problem.operation) << ", " << problem.size << " ranks, " << problem.ranks_per_host
                               << " a host, " << bytes << " bytes: " << chosen.algorithm->name
                               << ", where " << fastest << " is fastest");
  CHECK(seconds <= 1.5 * best);
}

}  // namespace

TEST_CASE("what is chosen is not much slower in a simulation than the best there is") {
  for (const Operation operation : hocket::plan::all_operations()) {
    for (const std::uint32_t size : {2U, 7U, 32U}) {
      for (const std::uint64_t bytes : {64U, 64'000U, 6'400'000U}) {
        check_choice({.operation = operation, .size = size}, bytes, ten_gigabit);
      }
    }
  }
}

TEST_CASE("nor is it on hosts of several ranks") {
  Network rails = find_preset("infiniband-hdr").value();
  rails.nics_per_host = 4;
  for (Network network : {ten_gigabit, rails}) {
    network.ranks_per_host = 8;
    for (const Operation operation : hocket::plan::all_operations()) {
      for (const std::uint32_t size : {20U, 24U, 64U}) {
        for (const std::uint64_t bytes : {64U, 64'000U, 2'000'000U}) {
          check_choice({.operation = operation, .size = size, .ranks_per_host = 8}, bytes, network);
        }
      }
    }
  }
}

TEST_CASE("where hosts have several ranks, vectors that are not huge go by the two levels") {
  Network network = ten_gigabit;
  network.ranks_per_host = 8;
  const Selector selector(network, {});
  for (const Operation operation :
       {Operation::all_reduce, Operation::reduce_scatter, Operation::all_gather}) {
    const Problem problem{.operation = operation, .size = 64, .ranks_per_host = 8};
    INFO(name(operation));
    CHECK(selector.choose(problem, 64'000).algorithm->name == "two_level");
  }
}

TEST_CASE("where ranks share processors, few messages go, but large vectors not all to one rank") {
  Network tcp = find_preset("tcp").value();
  tcp.ranks_per_host = 8;
  const Problem problem{.operation = Operation::all_reduce, .size = 8, .ranks_per_host = 8};
  const Selector selector(crowded(tcp, 4), {});
  CHECK(crowded(tcp, 1) == tcp);
  CHECK(crowded(tcp, 4).host_overhead == Approx(8 * tcp.host_overhead));
  CHECK(crowded(tcp, 4).latency == tcp.latency);
  CHECK(Selector(tcp, {}).choose(problem, 30'000).algorithm !=
        selector.choose(problem, 30'000).algorithm);
  for (const Operation each : {Operation::all_reduce, Operation::reduce_scatter,
                               Operation::all_gather, Operation::barrier}) {
    Problem small = problem;
    small.operation = each;
    CHECK(selector.choose(small, 64).algorithm->name == "star");
    CHECK(Selector(tcp, {}).choose(small, 64).algorithm->name != "star");
  }
  for (const std::uint64_t bytes : {500'000U, 8'000'000U}) {
    const Reach reach = selector.choose(problem, bytes).algorithm->reach;
    CHECK((reach != Reach::all && reach != Reach::star));
  }
  // What a core sends it does not send while it takes in something else.
  tcp.ranks_per_host = 4;
  const Problem parts{.operation = Operation::reduce_scatter, .size = 4, .ranks_per_host = 4};
  CHECK(Selector(tcp, {}).choose(parts, 32'768).algorithm->name == "direct");
  CHECK(Selector(crowded(tcp, 2), {}).choose(parts, 32'768).algorithm->name == "circulant");
}

TEST_CASE("candidates are all that there is, the cheapest first") {
  const Problem problem{.operation = Operation::all_to_all, .size = 16};
  const Selector selector(ten_gigabit, {});
  const auto candidates = selector.candidates(problem, 64);
  REQUIRE(candidates.size() == 2);
  CHECK(candidates[0].seconds <= candidates[1].seconds);
  CHECK(candidates[0].algorithm == selector.choose(problem, 64).algorithm);
  CHECK(selector.candidates(problem, 64, {.is_uneven = true}).size() == 1);
}

TEST_CASE("the first rule that fits is kept") {
  const Selector selector(
      ten_gigabit,
      parse_rules("all_reduce:-1K=one_shot,all_reduce@3-=ring,broadcast=chain/16").value());
  const Problem of_two{.operation = Operation::all_reduce, .size = 2};
  const Problem of_four{.operation = Operation::all_reduce, .size = 4};
  CHECK(selector.choose(of_two, 1024).algorithm->name == "one_shot");
  CHECK(selector.choose(of_four, 1025).algorithm->name == "ring");
  REQUIRE(selector.choose(of_four, 1025).rule != nullptr);
  CHECK(selector.choose(of_four, 1025).rule->text == "all_reduce@3-=ring");
  CHECK(selector.choose(of_two, 1025).rule == nullptr);
  const Choice piecewise = selector.choose({.operation = Operation::broadcast, .size = 5}, 8);
  CHECK(piecewise.pieces == 16);
  CHECK(piecewise.seconds > 0);
}

TEST_CASE("where bits must be the same at every size, only what can do that is chosen") {
  const Problem problem{.operation = Operation::all_reduce, .size = 16, .contributions = 64};
  const Selector selector(ten_gigabit, parse_rules("all_reduce=ring").value());
  CHECK(selector.choose(problem, 64).algorithm->is_canonical);
  CHECK(selector.choose(problem, 64).rule == nullptr);
}

TEST_CASE("where chunks differ in size, an algorithm that allows it is chosen") {
  const Problem problem{.operation = Operation::all_to_all, .size = 16};
  const Selector selector(ten_gigabit, parse_rules("all_to_all=bruck").value());
  CHECK(selector.choose(problem, 64).algorithm->name == "bruck");
  CHECK(selector.choose(problem, 64, {.is_uneven = true}).algorithm->allows_uneven);
}

TEST_CASE("where no rank may touch the memory, algorithms that only move are chosen, or none") {
  const Selector usual(ten_gigabit, {});
  const Selector selector(ten_gigabit, parse_rules("binomial,bruck,two_level").value());
  for (const Operation operation : hocket::plan::all_operations()) {
    for (const std::uint32_t size : {2U, 5U, 64U}) {
      for (const std::uint64_t bytes : {64U, 6'400'000U}) {
        const Problem problem{.operation = operation, .size = size, .ranks_per_host = 2};
        INFO(name(operation) << ", " << size << " ranks, " << bytes << " bytes");
        for (const bool is_uneven : {false, true}) {
          const Needs needs = {.is_uneven = is_uneven, .only_moves = true};
          for (const Selector& each : {usual, selector}) {
            const Choice choice = each.choose(problem, bytes, needs);
            const bool reduces =
                hocket::plan::reduces(operation) || operation == Operation::barrier;
            const bool is_whole = operation == Operation::broadcast && is_uneven;
            CHECK((choice.algorithm == nullptr) == (reduces || is_whole));
            CHECK((choice.algorithm == nullptr || choice.algorithm->only_moves));
          }
        }
      }
    }
  }
  const Needs needs = {.only_moves = true};
  const Problem gather{.operation = Operation::gather, .size = 16};
  CHECK(selector.choose(gather, 64).algorithm->name == "binomial");
  CHECK(selector.choose(gather, 64, needs).algorithm->name == "direct");
  CHECK(selector.choose(gather, 64, needs).rule == nullptr);
  CHECK(selector.choose({.operation = Operation::broadcast, .size = 16}, 64, needs).rule !=
        nullptr);
}

}  // namespace hocket::choose
