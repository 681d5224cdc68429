#include "fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/cost.hpp"

namespace hocket::bench {
namespace {

using sim::Network;
using Number = double Network::*;

constexpr double never_reached = 100;
constexpr double usual_burst = 256 << 10;
constexpr double worth_a_burst = 1.1;  // so much smaller is the error with it
constexpr double smallest = 1e-9;      // a nanosecond, and no limit or share is so small

/// What the measurements can tell. A limit that is none is tried at a value as well.
std::vector<Number> numbers_of(const Network& start, std::span<const Timed> measured) {
  const auto shares_host = [](const Timed& each) { return each.problem.ranks_per_host > 1; };
  const auto crosses = [](const Timed& each) {
    return each.problem.ranks_per_host < each.problem.size;
  };
  std::vector<Number> numbers;
  if (std::ranges::any_of(measured, shares_host)) {
    numbers.insert(numbers.end(),
                   {&Network::host_latency, &Network::host_overhead, &Network::host_bandwidth,
                    &Network::host_incast, &Network::reduce_speed, &Network::copy_speed});
    if (start.memory_bandwidth > 0) numbers.push_back(&Network::memory_bandwidth);
  }
  // Not incast: few algorithms have none, so that with a higher bandwidth it explains the rest as
  // well.
  if (std::ranges::any_of(measured, crosses)) {
    numbers.insert(numbers.end(), {&Network::latency, &Network::overhead, &Network::nic_bandwidth});
  }
  return numbers;
}

/// One number after the other, in steps that become smaller when none helps any more.
Network refined(const Network& start, std::span<const Timed> measured) {
  constexpr double smallest_step = 1.01;
  constexpr int rounds_max = 400;
  Network best = start;
  double error = error_of(best, measured);
  double step = 2;
  for (int round = 0; round < rounds_max && step > smallest_step; ++round) {
    bool has_helped = false;
    for (const Number number : numbers_of(best, measured)) {
      for (const double factor : {step, 1 / step}) {
        Network next = best;
        next.*number *= factor;
        if (next.*number < smallest) continue;
        const double then = error_of(next, measured);
        if (then >= error) continue;
        best = next;
        error = then;
        has_helped = true;
        break;
      }
    }
    if (!has_helped) step = std::sqrt(step);
  }
  return best;
}

}  // namespace

double error_of(const Network& network, std::span<const Timed> measured) {
  double sum = 0;
  Network of_job = network;
  for (const Timed& each : measured) {
    of_job.ranks_per_host = each.problem.ranks_per_host;
    const double estimate = sim::estimate_seconds(*each.algorithm, each.problem,
                                                  static_cast<double>(each.bytes), of_job);
    sum += std::abs(std::log(std::max(estimate, 1e-9) / each.seconds));
  }
  return measured.empty() ? 0 : std::exp(sum / static_cast<double>(measured.size())) - 1;
}

Network fit(const Network& start, std::span<const Timed> measured) {
  Network limited = start;
  const bool has_no_limit = start.memory_bandwidth == 0;  // then at first one that is never reached
  if (has_no_limit) limited.memory_bandwidth = never_reached * start.host_bandwidth;
  Network best = refined(limited, measured);
  Network bursting = best;
  bursting.burst = usual_burst;
  bursting = refined(bursting, measured);
  if (worth_a_burst * error_of(bursting, measured) < error_of(best, measured)) best = bursting;
  if (has_no_limit && best.memory_bandwidth >= never_reached / 2 * best.host_bandwidth) {
    best.memory_bandwidth = 0;
  }
  return best;
}

}  // namespace hocket::bench
