#include <algorithm>
#include <cstdint>
#include <vector>

#include "choose/cost.hpp"
#include "plan/catalog.hpp"
#include "simulator/simulate.hpp"
#include "support/catch.hpp"

namespace hocket::choose {

using namespace hocket::plan;

namespace {

double simulated_seconds(const Algorithm& algorithm, const Problem& problem, std::uint64_t bytes,
                         const Network& network) {
  return hocket::sim::simulate(build_all(algorithm, problem), network, {.elements = bytes})
      .value()
      .seconds;
}

const Algorithm& find(std::string_view name) {
  return *find_algorithm(Operation::all_reduce, name);
}

const Network ethernet = find_preset("ethernet-10g").value();

/// In the number of pieces that should be best.
struct Comparison {
  Comparison(const Algorithm& algorithm, Problem wanted, std::uint64_t bytes,
             const Network& network)
      : problem(wanted) {
    const auto amount = static_cast<double>(bytes);
    problem.pieces = best_pieces(algorithm, problem, amount, network);
    simulated = simulated_seconds(algorithm, problem, bytes, network);
    estimated = estimate_seconds(algorithm, problem, amount, network);
    std::ostringstream out;
    out << algorithm.name << " for " << name(algorithm.operation) << ", " << problem.size
        << " ranks, " << bytes << " bytes, " << problem.pieces << " pieces: " << estimated
        << " s, not " << simulated;
    text = out.str();
  }

  Problem problem;
  double simulated = 0;
  double estimated = 0;
  std::string text;
};

}  // namespace

TEST_CASE("estimates are close to what is simulated on one switch") {
  for (const Algorithm& algorithm : catalog()) {
    for (const std::uint32_t size : {2U, 6U, 16U, 50U}) {
      for (const std::uint64_t bytes : {0U, 48'000U, 4'800'000U}) {
        const Comparison found(algorithm, {.operation = algorithm.operation, .size = size}, bytes,
                               ethernet);
        INFO(found.text);
        // What two ranks send to each other at once overlaps here, and not in the estimates; and
        // what gathers after it has scattered waits for what is still being sent on.
        const Bound bound = bound_of(algorithm, found.problem);
        const bool is_exact = bound.rounds_are_exact && bound.blocks_in_line <= bound.rounds;
        const bool is_simple = !is_pipeline(algorithm) && algorithm.name != "scatter_all_gather";
        CHECK(found.estimated > found.simulated * (is_simple ? 0.7 : 0.55));
        CHECK(found.estimated < found.simulated * (is_exact ? 1.4 : 2.1));
      }
    }
  }
}

TEST_CASE("estimates of what is simplest are exact") {
  for (const char* const name : {"ring", "circulant", "rabenseifner"}) {
    for (const std::uint32_t size : {2U, 8U, 64U}) {
      const Problem problem = {.size = size};
      for (const std::uint64_t bytes : {64U << 10U, 64U << 20U}) {
        CHECK(estimate_seconds(find(name), problem, static_cast<double>(bytes), ethernet) ==
              Approx(simulated_seconds(find(name), problem, bytes, ethernet)).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("on hosts of several ranks, estimates know who shares a NIC") {
  Network network = ethernet;
  network.ranks_per_host = 8;
  for (const Algorithm& algorithm : catalog()) {
    for (const std::uint32_t size : {24U, 64U}) {
      for (const std::uint64_t bytes : {64U, 64'000U, 2'000'000U}) {
        const Problem problem = {
            .operation = algorithm.operation, .size = size, .ranks_per_host = 8};
        const Comparison found(algorithm, problem, bytes, network);
        INFO(found.text);
        CHECK(found.estimated > found.simulated * 0.5);
        CHECK(found.estimated < found.simulated * (algorithm.name == "swing" ? 2.7 : 2.2));
      }
    }
  }
}

TEST_CASE("the bound is the latency of the rounds or the time of the bytes") {
  const Network network = {.latency = 8e-6, .overhead = 1e-6, .nic_bandwidth = 1e9};
  const auto bound = [&](Operation operation, std::uint32_t size, double bytes) {
    return bound_seconds({.operation = operation, .size = size}, bytes, network);
  };
  CHECK(bound(Operation::all_reduce, 1, 1e9) == 0);
  CHECK(bound(Operation::all_reduce, 5, 8) == Approx(30e-6));
  CHECK(bound(Operation::all_reduce, 4, 1e9) == Approx(1.5));
  CHECK(bound(Operation::all_gather, 4, 1e9) == Approx(0.75));
  CHECK(bound(Operation::broadcast, 4, 1e9) == Approx(1));
  CHECK(bound(Operation::barrier, 1000, 0) == Approx(100e-6));
  CHECK(bound(Operation::scan, 4, 1e9) == Approx(1));
  CHECK(bound(Operation::exscan, 5, 8) == Approx(30e-6));

  Network hosts = network;
  hosts.ranks_per_host = 4;
  hosts.nics_per_host = 2;
  const Problem problem = {.size = 16};
  CHECK(bound_seconds(problem, 1e9, hosts) == Approx(0.75));  // 2 · 3/4 through two NICs
  hosts.ranks_per_host = 16;
  CHECK(bound_seconds(problem, 1e9, hosts) == Approx(2 * 15.0 / 16 / 10));
}

TEST_CASE("no algorithm that sends one message at a time beats the bound") {
  for (const char* const name : {"ring", "circulant", "recursive_doubling", "rabenseifner"}) {
    for (const std::uint32_t size : {2U, 7U, 32U}) {
      for (const std::uint64_t bytes : {4U, 70'000U, 7'000'000U}) {
        const Problem problem = {.size = size};
        CHECK(simulated_seconds(find(name), problem, bytes, ethernet) * (1 + 1e-6) >=
              bound_seconds(problem, static_cast<double>(bytes), ethernet));
      }
    }
  }
}

TEST_CASE("pipelines get more pieces for more bytes, others none") {
  const Algorithm& chain = *find_algorithm(Operation::broadcast, "chain");
  CHECK(is_pipeline(chain));
  CHECK_FALSE(is_pipeline(find("ring")));
  const Problem problem = {.operation = Operation::broadcast, .size = 16};
  CHECK(best_pieces(chain, problem, 64, ethernet) == 1);
  const std::uint32_t few = best_pieces(chain, problem, 1e6, ethernet);
  const std::uint32_t many = best_pieces(chain, problem, 1e8, ethernet);
  CHECK(few > 1);
  CHECK(many > few);
  CHECK(best_pieces(find("ring"), {.size = 16}, 1e8, ethernet) == 1);
}

TEST_CASE("estimates know that ranks share processors") {
  Network machine = ethernet;
  const auto check = [&](std::string_view name, std::uint32_t processors) {
    machine.processors = processors;
    for (const std::uint32_t size : {7U, 12U, 16U}) {
      const Comparison found(find(name), {.operation = Operation::all_reduce, .size = size}, 1024,
                             machine);
      INFO(found.text << ", " << processors << " processors");
      CHECK(found.estimated > 0.7 * found.simulated);
      CHECK(found.estimated < 1.7 * found.simulated);
    }
  };
  for (const std::string_view name :
       {"star", "ring", "recursive_doubling", "rabenseifner", "one_shot", "double_tree"}) {
    check(name, 2);
  }
  check("star", 1);
}

TEST_CASE("estimates know that messages of several packets are acknowledged") {
  Network machine = ethernet;
  machine.processors = 2;
  machine.acknowledge = 20e-6;
  for (const std::string_view name : {"recursive_doubling", "rabenseifner", "double_tree"}) {
    const Problem problem = {.operation = Operation::all_reduce, .size = 8};
    const Comparison small(find(name), problem, 1024, machine);
    const Comparison large(find(name), problem, 4096, machine);
    INFO(small.text << '\n' << large.text);
    CHECK(large.estimated > small.estimated);
    CHECK(large.estimated > 0.6 * large.simulated);
    CHECK(large.estimated < 1.7 * large.simulated);
  }
  const Algorithm& doubling = find("recursive_doubling");
  const Problem problem = {.operation = Operation::all_reduce, .size = 8};
  const double without = estimate_seconds(doubling, problem, 4096, ethernet);
  Network answering = ethernet;
  answering.acknowledge = 20e-6;
  CHECK(estimate_seconds(doubling, problem, 4096, answering) == Approx(without + 3 * 20e-6));
}

TEST_CASE("estimates know bursts") {
  Network cluster = find_preset("ethernet-1g").value();
  cluster.burst = 256 << 10;
  for (const std::string_view name : {"ring", "recursive_doubling", "rabenseifner"}) {
    for (const std::uint64_t bytes : {1U << 10U, 16U << 10U, 1U << 20U, 16U << 20U}) {
      const Comparison found(find(name), {.operation = Operation::all_reduce, .size = 8}, bytes,
                             cluster);
      INFO(found.text);
      CHECK(found.estimated == Approx(found.simulated).epsilon(0.1));
    }
  }
}

}  // namespace hocket::choose
