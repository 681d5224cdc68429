#include "fit.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "choose/cost.hpp"
#include "plan/plan.hpp"
#include "simulator/simulate.hpp"

namespace hocket::bench {
namespace {

using choose::Network;
using Number = double Network::*;

constexpr double never_reached = 100;
constexpr double usual_burst = 256 << 10;
constexpr double usual_handover = 3e-6;
constexpr double usual_acknowledge = 3e-6;
constexpr double worth_a_number = 1.05;   // that is 0 mostly: so much smaller is the error with it
constexpr double worth_a_step = 0.99999;  // so much smaller an error
constexpr double smallest = 1e-9;         // a nanosecond, and no limit or share is so small
/// Of the fastest, and what is as fast, of a problem and size: it is what will be chosen.
constexpr double weight_of_fastest = 20;
constexpr double as_fast = 1.05;
/// How much worse one large error is than many small ones: with 1 not at all, with 2 the odd
/// measurement decides.
constexpr double unevenness = 1.5;

double weight(const Timed& what, std::span<const Timed> measured) {
  const bool is_fastest = std::ranges::none_of(measured, [&](const Timed& each) {
    plan::Problem problem = each.problem;
    problem.pieces = what.problem.pieces;
    return problem == what.problem && each.bytes == what.bytes &&
           as_fast * each.seconds < what.seconds;
  });
  return is_fastest ? weight_of_fastest : 1;
}

class Fitter {
 public:
  Fitter(const Network& start, std::span<const Timed> measured);

  [[nodiscard]] bool simulates() const noexcept { return !plans_.empty(); }
  [[nodiscard]] double seconds(std::size_t number, Network network) const;
  [[nodiscard]] double error(const Network& network) const;
  /// One number after the other, or two at once where that does not help, in steps that become
  /// smaller when neither does.
  [[nodiscard]] Network refined(const Network& start) const;

 private:
  struct Candidate {
    Network network;
    double error;
  };
  bool improve_one(Candidate& best, double step) const;
  bool improve_two(Candidate& best, double step) const;
  bool take_if_better(const Network& next, Candidate& best) const;
  void build_plans();
  void choose_numbers(const Network& start);

  std::span<const Timed> measured_;
  std::vector<double> weights_;
  std::vector<std::vector<plan::Plan>> plans_;  // of each, where it is simulated
  std::vector<Number> numbers_;                 // what the measurements can tell
};

Fitter::Fitter(const Network& start, std::span<const Timed> measured) : measured_(measured) {
  for (const Timed& each : measured) weights_.push_back(weight(each, measured));
  if (start.processors > 0) build_plans();
  choose_numbers(start);
}

/// None when they are too many.
void Fitter::build_plans() {
  constexpr std::size_t steps_max = 1 << 18;  // of all, which are simulated some thousand times
  std::size_t steps = 0;
  for (const Timed& each : measured_) {
    plans_.push_back(plan::build_all(*each.algorithm, each.problem));
    for (const plan::Plan& plan : plans_.back()) steps += plan.steps.size();
    if (steps > steps_max) return plans_.clear();
  }
}

void Fitter::choose_numbers(const Network& start) {
  const auto shares_host = [](const Timed& each) { return each.problem.ranks_per_host > 1; };
  const auto crosses = [](const Timed& each) {
    return each.problem.ranks_per_host < each.problem.size;
  };
  if (std::ranges::any_of(measured_, shares_host)) {
    numbers_.insert(numbers_.end(),
                    {&Network::host_latency, &Network::host_overhead, &Network::host_bandwidth,
                     &Network::host_incast, &Network::reduce_speed, &Network::copy_speed});
    if (start.memory_bandwidth > 0) numbers_.push_back(&Network::memory_bandwidth);
  }
  // Not incast: few algorithms have none, so that with a higher bandwidth it explains the rest as
  // well.
  if (std::ranges::any_of(measured_, crosses)) {
    numbers_.insert(numbers_.end(),
                    {&Network::latency, &Network::overhead, &Network::nic_bandwidth});
  }
  if (start.handover > 0) numbers_.push_back(&Network::handover);
  if (simulates()) numbers_.push_back(&Network::acknowledge);  // 0 stays what it is
}

double Fitter::seconds(std::size_t number, Network network) const {
  constexpr std::uint32_t element_bytes = 4;
  const Timed& what = measured_[number];
  network.ranks_per_host = what.problem.ranks_per_host;
  if (!simulates()) {
    return choose::estimate_seconds(*what.algorithm, what.problem, static_cast<double>(what.bytes),
                                    network);
  }
  return sim::simulate(plans_[number], network,
                       {.elements = (what.bytes + element_bytes - 1) / element_bytes,
                        .element_bytes = element_bytes})
      .value()
      .seconds;
}

double Fitter::error(const Network& network) const {
  double sum = 0;
  double all = 0;
  for (std::size_t i = 0; i < measured_.size(); ++i) {
    const double ratio = std::max(seconds(i, network), smallest) / measured_[i].seconds;
    sum += weights_[i] * std::pow(std::abs(std::log(ratio)), unevenness);
    all += weights_[i];
  }
  return all > 0 ? std::pow(sum / all, 1 / unevenness) : 0;
}

Network Fitter::refined(const Network& start) const {
  constexpr double smallest_step = 1.01;
  constexpr int rounds_max = 400;
  Candidate best = {start, error(start)};
  double step = 2;
  for (int round = 0; round < rounds_max && step > smallest_step; ++round) {
    if (!improve_one(best, step) && !improve_two(best, step)) step = std::sqrt(step);
  }
  return best.network;
}

bool Fitter::improve_one(Candidate& best, double step) const {
  bool has_helped = false;
  for (const Number number : numbers_) {
    for (const double factor : {step, 1 / step}) {
      Network next = best.network;
      next.*number *= factor;
      if (next.*number < smallest || !take_if_better(next, best)) continue;
      has_helped = true;
      break;
    }
  }
  return has_helped;
}

/// Some numbers can take each other's place, so that to change one alone makes it worse.
bool Fitter::improve_two(Candidate& best, double step) const {
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      for (const double one : {step, 1 / step}) {
        for (const double other : {step, 1 / step}) {
          Network next = best.network;
          next.*numbers_[i] *= one;
          next.*numbers_[j] *= other;
          if (next.*numbers_[i] < smallest || next.*numbers_[j] < smallest) continue;
          if (take_if_better(next, best)) return true;
        }
      }
    }
  }
  return false;
}

bool Fitter::take_if_better(const Network& next, Candidate& best) const {
  const double then = error(next);
  if (then >= worth_a_step * best.error) return false;
  best = {next, then};
  return true;
}

}  // namespace

std::vector<double> foretold(const Network& network, std::span<const Timed> timed) {
  const Fitter fitter(network, timed);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < timed.size(); ++i) seconds.push_back(fitter.seconds(i, network));
  return seconds;
}

double error_of(const Network& network, std::span<const Timed> measured) {
  return std::exp(Fitter(network, measured).error(network)) - 1;
}

Network fit(const Network& start, std::span<const Timed> measured) {
  Network limited = start;
  const bool has_no_limit = start.memory_bandwidth == 0;  // then at first one that is never reached
  if (has_no_limit) limited.memory_bandwidth = never_reached * start.host_bandwidth;
  if (start.processors > 0 && start.handover == 0) limited.handover = usual_handover;
  const Fitter fitter(limited, measured);
  Network best = fitter.refined(limited);
  const auto try_with = [&](Number number, double usual) {
    Network with = best;
    with.*number = usual;
    with = fitter.refined(with);
    if (worth_a_number * fitter.error(with) < fitter.error(best)) best = with;
  };
  try_with(&Network::burst, usual_burst);
  if (fitter.simulates()) try_with(&Network::acknowledge, usual_acknowledge);
  if (has_no_limit && best.memory_bandwidth >= never_reached / 2 * best.host_bandwidth) {
    best.memory_bandwidth = 0;
  }
  return best;
}

}  // namespace hocket::bench
