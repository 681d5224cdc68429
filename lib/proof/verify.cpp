#include "proof/verify.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "proof/check.hpp"
#include "proof/heard.hpp"
#include "proof/schedule.hpp"
#include "proof/uneven.hpp"
#include "proof/values.hpp"

namespace hocket::plan {
namespace {

/// All plans are of one algorithm and problem, and stand at the place of their rank.
Status check_together(std::span<const Plan> plans) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    if (plan.rank != i || plan.problem.size != plans.size() ||
        plan.problem != plans.front().problem || plan.shape != plans.front().shape) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("plan {} of {} is for rank {} of {}, or for another problem", i,
                                plans.size(), plan.rank, plan.problem.size));
    }
    if (Status status = check_plan(plan); !status.ok()) return status;
  }
  if (!plans.empty()) return {};
  return Status(StatusCode::invalid_argument, "no plans");
}

template <class World>
Status run(const Schedule& schedule, World& world) {
  for (const Event& event : schedule.events) {
    if (Status status = world.run(event); !status.ok()) return status;
  }
  return world.check_results();
}

std::uint64_t blocks_sent(const Plan& plan) noexcept {
  std::uint64_t sum = 0;
  for (const Step& step : plan.steps) sum += step.sends() ? step.count : 0;
  return sum;
}

}  // namespace

Result<Proof> verify(std::span<const Plan> plans, const VerifyOptions& options) {
  if (Status status = check_together(plans); !status.ok()) return status;
  const auto schedule = make_schedule(plans);
  if (!schedule.ok()) return schedule.status();
  const Operation operation = plans.front().problem.operation;
  Proof proof{.messages = schedule->messages,
              .rounds = schedule->rounds,
              .allows_uneven = allow_uneven_chunks(plans, *schedule)};
  if (operation == Operation::barrier) {
    Heard heard(plans);
    if (Status status = run(*schedule, heard); !status.ok()) return status;
  } else {
    const bool in_place = options.in_place && can_be_in_place(plans.front().problem);
    Values values(plans, in_place, options.seed);
    if (Status status = run(*schedule, values); !status.ok()) return status;
    proof.is_canonical = values.are_canonical();
  }
  for (const Plan& plan : plans) {
    proof.steps += plan.steps.size();
    proof.blocks_sent = std::max(proof.blocks_sent, blocks_sent(plan));
  }
  return proof;
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
  if (algorithm.allows_uneven && !proof.allows_uneven) {
    return Status(StatusCode::mismatch, "it does not allow chunks of different sizes, as it says");
  }
  if (algorithm.is_canonical && !proof.is_canonical) {
    return Status(StatusCode::mismatch, "the tree in which it combines is not the canonical tree");
  }
  return {};
}

}  // namespace hocket::plan
