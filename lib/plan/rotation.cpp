#include "plan/rotation.hpp"

namespace hocket::plan {

Rotation::Rotation(const Problem& problem, const Shape& shape, Symmetry symmetry,
                   std::uint32_t ranks) noexcept
    : ranks_(ranks), size_(problem.size), loop_(shape.vector_blocks()) {
  if (symmetry == Symmetry::none) return;
  if (symmetry == Symmetry::rotated_then_same) {
    blocks_ = {0, 0, ranks * loop_};
    loop_ *= size_;
    return;
  }
  const std::uint32_t blocks = ranks * (loop_ / size_);
  const auto turns = [&](Buffer buffer) {
    return blocks_of(problem, shape, 0, buffer) == loop_ ? blocks : 0;
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

std::uint32_t first_same(const Plan& plan, Symmetry symmetry) noexcept {
  const auto all = static_cast<std::uint32_t>(plan.steps.size());
  if (symmetry != Symmetry::rotated_then_same) return all;
  std::uint32_t end = all;
  while (end > 0 && !plan.steps[end - 1].communicates()) --end;
  return end == 0 ? all : end;
}

void rotate(Plan& plan, Symmetry symmetry, std::uint32_t rank) noexcept {
  const Rotation rotation(plan.problem, plan.shape, symmetry, rank);
  const std::uint32_t end = first_same(plan, symmetry);
  for (std::uint32_t i = 0; i < end; ++i) plan.steps[i] = rotation.step(plan.steps[i]);
  plan.rank = rank;
}

}  // namespace hocket::plan
