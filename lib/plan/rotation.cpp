#include "plan/rotation.hpp"

namespace hocket::plan {

Rotation::Rotation(const Problem& problem, const Shape& shape, Symmetry symmetry,
                   std::uint32_t ranks) noexcept
    : ranks_(ranks), size_(problem.size), vector_(shape.vector_blocks()) {
  if (symmetry == Symmetry::none) return;
  const std::uint32_t blocks = ranks * (vector_ / size_);
  const auto turns = [&](Buffer buffer) {
    return blocks_of(problem, shape, 0, buffer) == vector_ ? blocks : 0;
  };
  blocks_ = {turns(Buffer::in), turns(Buffer::out), symmetry == Symmetry::rotated ? blocks : 0};
}

Step Rotation::step(const Step& of_rank_0) const noexcept {
  Step step = of_rank_0;
  if (step.communicates()) step.peer = peer(step.peer);
  if (step.has_source()) step.from = block(step.from_buffer, step.from);
  if (step.has_target()) step.to = block(step.to_buffer, step.to);
  return step;
}

void rotate(Plan& plan, Symmetry symmetry, std::uint32_t rank) noexcept {
  const Rotation rotation(plan.problem, plan.shape, symmetry, rank);
  for (Step& step : plan.steps) step = rotation.step(step);
  plan.rank = rank;
}

}  // namespace hocket::plan
