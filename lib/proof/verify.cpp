#include "proof/verify.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "proof/amount.hpp"
#include "proof/schedule.hpp"

namespace hocket::proof {

using plan::Algorithm;
using plan::Bound;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using plan::Step;

namespace {

/// All plans are of one algorithm and problem, and stand at the place of their rank.
Status check_together(std::span<const Plan> plans) {
  Amount amount;
  for (const Plan& plan : plans) {
    if (Status status = amount.add(plan); !status.ok()) return status;
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    if (plan.rank != i || plan.problem.size != plans.size() ||
        plan.problem != plans.front().problem || plan.shape != plans.front().shape) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("plan {} of {} is for rank {} of {}, or for another problem", i,
                                plans.size(), plan.rank, plan.problem.size));
    }
    if (Status status = amount.add_steps(plan); !status.ok()) return status;
    if (Status status = check_plan(plan); !status.ok()) return status;
  }
  if (!plans.empty()) return {};
  return Status(StatusCode::invalid_argument, "no plans");
}

std::uint64_t blocks_sent(const Plan& plan) noexcept {
  std::uint64_t sum = 0;
  for (const Step& step : plan.steps) sum += step.sends() ? step.count : 0;
  return sum;
}

}  // namespace

void Verifier::start(std::span<const Plan> plans, const VerifyOptions& options) {
  const Operation operation = plans.front().problem.operation;
  is_barrier_ = operation == Operation::barrier;
  options_ = options;
  options_.in_place = options.in_place && can_be_in_place(operation);
  uneven_.start(plans);
  if (is_barrier_) return heard_.start(plans);
  apart_.start(plans, false, options.seed);
  if (options_.in_place) in_place_.start(plans, true, options.seed);
}

Status Verifier::run(std::span<const Event> events) {
  if (options_.uneven) uneven_.run(events);
  if (is_barrier_) return heard_.run(events);
  Status status = apart_.run(events);
  if (status.ok() && options_.in_place) status = in_place_.run(events);
  return status;
}

Status Verifier::run_in_order() {
  Status status;
  for (auto events = order_.next(); !events.empty(); events = order_.next()) {
    if (status.ok()) status = run(events);
  }
  return status;
}

Status Verifier::check_results() const {
  if (is_barrier_) return heard_.check_results();
  Status status = apart_.check_results();
  if (status.ok() && options_.in_place) status = in_place_.check_results();
  return status;
}

Result<Proof> Verifier::verify(std::span<const Plan> plans, const VerifyOptions& options) {
  if (Status status = check_together(plans); !status.ok()) return status;
  start(plans, options);
  order_.start(plans);
  Status status = run_in_order();
  Proof proof{.messages = order_.messages(), .rounds = order_.rounds()};
  if (!order_.is_over()) {  // they may be able to go in another order
    const auto schedule = make_schedule(plans);
    if (!schedule.ok()) return schedule.status();
    start(plans, options);
    status = run(schedule->events);
    proof = {.messages = schedule->messages, .rounds = schedule->rounds};
  }
  if (status.ok()) status = check_results();
  if (!status.ok()) return status;
  proof.allows_uneven = options.uneven && uneven_.allows();
  for (const Plan& plan : plans) {
    proof.steps += plan.steps.size();
    proof.blocks_sent = std::max(proof.blocks_sent, blocks_sent(plan));
  }
  return proof;
}

Result<Proof> verify(std::span<const Plan> plans, const VerifyOptions& options) {
  return Verifier().verify(plans, options);
}

Status check_promises(const Algorithm& algorithm, const Problem& problem, const Proof& proof) {
  const Bound bound = bound_of(algorithm, problem);
  if (proof.messages > 0 && proof.rounds == 0) {
    return Status(StatusCode::mismatch, "the order of the plans is none in which messages can go");
  }
  const bool is_within = proof.rounds <= bound.rounds && proof.blocks_sent <= bound.blocks_sent;
  const bool is_equal = proof.rounds == bound.rounds && proof.blocks_sent == bound.blocks_sent;
  if (bound.is_tight ? !is_equal : !is_within) {
    return Status(StatusCode::mismatch,
                  fmt::format("{} rounds and {} blocks sent, where its bound says {} and {}",
                              proof.rounds, proof.blocks_sent, bound.rounds, bound.blocks_sent));
  }
  if (!algorithm.allows_uneven || proof.allows_uneven) return {};
  return Status(StatusCode::mismatch, "it does not allow chunks of different sizes, as it says");
}

}  // namespace hocket::proof
