#include <vector>

#include "bench/fit.hpp"
#include "support/catch.hpp"

using namespace hocket;
using namespace hocket::bench;
using plan::Operation;

namespace {

/// What algorithms take on a network that is as it is foretold.
std::vector<Timed> times_on(choose::Network network, std::uint32_t ranks_per_host) {
  network.ranks_per_host = ranks_per_host;
  std::vector<Timed> all;
  for (const plan::Algorithm& algorithm : plan::catalog()) {
    const plan::Problem problem{
        .operation = algorithm.operation, .size = 8, .ranks_per_host = ranks_per_host};
    if (algorithm.operation == Operation::barrier || !can_solve(algorithm, problem)) continue;
    for (const std::uint64_t bytes : {1U << 10U, 64U << 10U, 4U << 20U}) {
      all.push_back({&algorithm, problem, bytes});
    }
  }
  const std::vector<double> seconds = foretold(network, all);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].seconds = seconds[i];
  return all;
}

/// Of those of them that processors decide.
std::vector<Timed> small_all_reduces_on(const choose::Network& network) {
  std::vector<Timed> all = times_on(network, 1);
  std::erase_if(all, [](const Timed& each) {
    return each.problem.operation != Operation::all_reduce || each.bytes > 64 << 10;
  });
  return all;
}

}  // namespace

TEST_CASE("a fit finds the network that the times are of") {
  const choose::Network usual = choose::find_preset(choose::usual_network).value();
  choose::Network truth = usual;
  truth.latency = 60e-6;
  truth.nic_bandwidth = 110e6;
  const auto measured = times_on(truth, 1);
  const choose::Network found = fit(usual, measured);
  CHECK(error_of(usual, measured) > 0.5);
  CHECK(error_of(found, measured) < 0.02);
  CHECK(found.nic_bandwidth == Approx(110e6).epsilon(0.05));
  CHECK(found.host_bandwidth == usual.host_bandwidth);  // of which nothing was measured
}

TEST_CASE("a fit finds what hosts are like inside, with incast") {
  const choose::Network usual = choose::find_preset(choose::usual_network).value();
  choose::Network truth = usual;
  truth.host_bandwidth /= 3;
  truth.host_incast *= 4;
  const auto measured = times_on(truth, 8);
  const choose::Network found = fit(usual, measured);
  CHECK(error_of(found, measured) < 0.05);
  CHECK(found.host_incast > 2 * usual.host_incast);
  CHECK(found.nic_bandwidth == usual.nic_bandwidth);
}

TEST_CASE("a fit finds what ranks cost that take turns on processors") {
  choose::Network usual = choose::find_preset(choose::usual_network).value();
  usual.processors = 2;
  choose::Network truth = usual;
  truth.overhead = 6e-6;
  truth.handover = 4e-6;
  const std::vector<Timed> measured = small_all_reduces_on(truth);
  CHECK(error_of(usual, measured) > 0.3);
  const choose::Network found = fit(usual, measured);
  CHECK(error_of(found, measured) < 0.05);
  CHECK(found.handover > 1e-6);
  CHECK(found.acknowledge == 0);

  truth.handover = 0;
  truth.acknowledge = 5e-6;  // answers to messages cost as much as they
  CHECK(fit(usual, small_all_reduces_on(truth)).acknowledge == Approx(5e-6).epsilon(0.2));
}

TEST_CASE("a fit finds that links let bursts pass") {
  const choose::Network usual = choose::find_preset(choose::usual_network).value();
  choose::Network truth = usual;
  truth.nic_bandwidth = 110e6;
  truth.burst = 256 << 10;
  CHECK(fit(usual, times_on(truth, 1)).burst == truth.burst);
  truth.burst = 0;
  CHECK(fit(usual, times_on(truth, 1)).burst == 0);
}
