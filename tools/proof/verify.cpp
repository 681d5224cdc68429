#include "proof/verify.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "proof/check.hpp"
#include "proof/schedule.hpp"
#include "proof/symmetric.hpp"

namespace hocket::proof {

using plan::Algorithm;
using plan::Bound;
using plan::Operation;
using plan::Plan;
using plan::Problem;
using plan::Step;

Result<Proof> Verifier::verify(std::span<const Plan> plans, const VerifyOptions& options) {
  if (plans.empty()) return Status(StatusCode::invalid_argument, "no plans");
  // All of them, before anything is allocated for one.
  Amount amount;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    if (Status status = check_place(plans, rank); !status.ok()) return status;
    if (Status status = check_extent(plans[rank]); !status.ok()) return status;
    if (Status status = amount.add(plans[rank]); !status.ok()) return status;
  }
  Proof proof;
  for (const Plan& plan : plans) {
    if (Status status = amount.add_steps(plan); !status.ok()) return status;
    if (Status status = check_and_count(plan, proof); !status.ok()) return status;
  }
  order_.start(plans);
  Status status = run_in_order(plans, options, proof);
  if (!order_.is_over()) {  // they may be able to go in another order
    const auto schedule = make_schedule(plans);
    if (!schedule.ok()) return schedule.status();
    start(plans, options);
    status = run(schedule->events);
    proof.messages = schedule->messages;
    proof.rounds = schedule->rounds;
  }
  return finish(std::move(status), proof);
}

Result<Proof> Verifier::build_and_verify(const Algorithm& algorithm, const Problem& problem,
                                         const VerifyOptions& options) {
  plan::Builder builder(algorithm, problem);
  if (is_proved_by_one(algorithm, options)) {
    return verify_symmetric(builder.build(0), algorithm.symmetry, options);
  }
  plans_.resize(problem.size);
  Proof proof;
  Plan plan;  // all go the same way through the cache
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
    plan = builder.build(rank, std::move(plan));
    if (Status status = check_and_count(plan, proof); !status.ok()) return status;
    if (rank == 0) order_.start(problem, plan.shape);
    order_.add(plan);
    plans_[rank] = {.algorithm = plan.algorithm,
                    .problem = problem,
                    .rank = rank,
                    .shape = plan.shape,
                    .scratch_copies = plan.scratch_copies};
  }
  Status status = run_in_order(plans_, options, proof);
  if (!order_.is_over()) {  // they may be able to go in another order
    if (proof.steps > limits::proof_steps_max) {
      return Status(StatusCode::limit_exceeded,
                    "the steps can't go in the order of the plans, and are too many for another");
    }
    order_ = OrderedRun();
    return verify(build_all(algorithm, problem), options);
  }
  return finish(std::move(status), proof);
}

/// All plans are of one problem, and stand at the place of their rank.
Status Verifier::check_place(std::span<const Plan> plans, std::size_t rank) {
  const Plan& plan = plans[rank];
  if (plan.rank == rank && plan.problem.size == plans.size() &&
      plan.problem == plans.front().problem && plan.shape == plans.front().shape) {
    return {};
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("plan {} of {} is for rank {} of {}, or for another problem", rank,
                            plans.size(), plan.rank, plan.problem.size));
}

Status Verifier::check_and_count(const Plan& plan, Proof& proof) {
  if (Status status = check_plan(plan, races_); !status.ok()) return status;
  std::uint64_t blocks_sent = 0;
  for (const Step& step : plan.steps) blocks_sent += step.sends() ? step.count : 0;
  proof.blocks_sent = std::max(proof.blocks_sent, blocks_sent);
  proof.steps += plan.steps.size();
  return {};
}

void Verifier::start(std::span<const Plan> plans, const VerifyOptions& options) {
  const Problem& problem = plans.front().problem;
  options_ = options;
  options_.in_place = options.in_place && can_be_in_place(problem);
  options_.order = options.order && reduces(problem.operation);
  is_barrier_ = problem.operation == Operation::barrier;
  allows_uneven_ = true;
  if (options.uneven) uneven_.start(problem, plans.front().shape);
  if (is_barrier_) return heard_.start(plans);
  apart_.start(plans, {.canonical = options.canonical, .seed = options.seed});
  if (options_.order) {
    ordered_.start(plans, {.canonical = false, .ordered = true, .seed = options.seed});
  }
  if (!options_.in_place) return;
  in_place_.start(plans, {.in_place = true, .canonical = false, .seed = options.seed});
}

Status Verifier::run_in_order(std::span<const Plan> plans, const VerifyOptions& options,
                              Proof& proof) {
  start(plans, options);
  Status status;
  for (auto events = order_.next(); !events.empty(); events = order_.next()) {
    if (status.ok()) status = run(events);
  }
  proof.messages = order_.messages();
  proof.rounds = order_.rounds();
  return status;
}

Status Verifier::run(std::span<const Event> events) {
  if (options_.uneven && allows_uneven_) {
    allows_uneven_ = std::ranges::all_of(events, [&](const Event& each) {
      return uneven_.keeps_size(each.step.rank, *each.from, each.last().rank, *each.to);
    });
  }
  if (is_barrier_) return heard_.run(events);
  Status status = apart_.run(events);
  if (status.ok() && options_.in_place) status = in_place_.run(events);
  if (status.ok() && options_.order) status = ordered_.run(events);
  return status;
}

Result<Proof> Verifier::finish(Status status, Proof proof) const {
  if (status.ok()) status = check_results();
  if (!status.ok()) return status;
  proof.allows_uneven = options_.uneven && allows_uneven_;
  proof.is_canonical = !is_barrier_ && apart_.are_canonical();
  proof.breaks_order = options_.order && !ordered_.check_results().ok();
  return proof;
}

Status Verifier::check_results() const {
  if (is_barrier_) return heard_.check_results();
  Status status = apart_.check_results();
  if (status.ok() && options_.in_place) status = in_place_.check_results();
  return status;
}

Result<Proof> verify(std::span<const Plan> plans, const VerifyOptions& options) {
  return Verifier().verify(plans, options);
}

Status check_promises(const Algorithm& algorithm, const Problem& problem, const Proof& proof) {
  const Bound bound = bound_of(algorithm, problem);
  if (proof.messages > 0 && proof.rounds == 0) {
    return Status(StatusCode::mismatch, "the order of the plans is none in which messages can go");
  }
  const bool rounds_hold =
      bound.rounds_are_exact ? proof.rounds == bound.rounds : proof.rounds <= bound.rounds;
  if (!rounds_hold || proof.blocks_sent != bound.blocks_sent) {
    return Status(StatusCode::mismatch,
                  fmt::format("{} rounds and {} blocks sent, where its bound says {} and {}",
                              proof.rounds, proof.blocks_sent, bound.rounds, bound.blocks_sent));
  }
  if (algorithm.allows_uneven && !proof.allows_uneven) {
    return Status(StatusCode::mismatch, "it does not allow chunks of different sizes, as it says");
  }
  if (algorithm.is_canonical && !proof.is_canonical) {
    return Status(StatusCode::mismatch, "the tree in which it combines is not the canonical tree");
  }
  if (algorithm.keeps_order && proof.breaks_order) {
    return Status(StatusCode::mismatch, "it combines in another order than that of the ranks");
  }
  return {};
}

}  // namespace hocket::proof
