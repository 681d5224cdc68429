#include "proof/amount.hpp"

#include <fmt/format.h>

#include "base/limits.hpp"

namespace hocket::proof {
namespace {

/// Of a barrier, a block is a bit for each rank.
constexpr std::uint64_t bits_of_block = 128;

Status refuse(std::string_view what, std::uint64_t amount, std::uint64_t limit) {
  return Status(StatusCode::limit_exceeded,
                fmt::format("these plans have {} {}, and a proof takes {}", amount, what, limit))
      .with_hint("prove the algorithm for fewer ranks");
}

}  // namespace

Status Amount::add(const plan::Plan& plan) {
  steps_ += plan.steps.size();
  const std::uint64_t in = contributions_of(plan.problem, plan.rank).count();
  const std::uint64_t vectors = in + 1 + plan.scratch_copies;
  const bool is_barrier = plan.problem.operation == plan::Operation::barrier;
  const std::uint64_t weight = is_barrier ? plan.problem.size / bits_of_block + 1 : 1;
  kept_ += vectors * plan.shape.vector_blocks() * weight;
  if (steps_ > limits::proof_steps_max) return refuse("steps", steps_, limits::proof_steps_max);
  if (kept_ > limits::proof_blocks_max) {
    return refuse("blocks in all buffers", kept_, limits::proof_blocks_max);
  }
  return {};
}

Status Amount::add_steps(const plan::Plan& plan) {
  for (const plan::Step& step : plan.steps) touched_ += step.count;
  if (touched_ <= limits::proof_touched_blocks_max) return {};
  return refuse("blocks that steps touch", touched_, limits::proof_touched_blocks_max);
}

}  // namespace hocket::proof
