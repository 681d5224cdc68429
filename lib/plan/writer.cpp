#include "plan/writer.hpp"

namespace hocket::plan {

PlanWriter::PlanWriter(std::string_view algorithm, const Problem& problem, std::uint32_t rank,
                       std::uint32_t blocks_per_chunk)
    : plan_{.algorithm = algorithm,
            .problem = problem,
            .rank = rank,
            .shape = shape_of(problem, blocks_per_chunk)},
      hazards_(CellMap(problem, plan_.shape, rank, can_be_in_place(problem))) {}

void PlanWriter::restart(std::uint32_t rank, Plan memory) {
  memory.algorithm = plan_.algorithm;
  memory.problem = plan_.problem;
  memory.rank = rank;
  memory.shape = plan_.shape;
  memory.scratch_copies = 0;
  memory.steps.clear();
  memory.after.clear();
  memory.steps.reserve(steps_expected_);
  memory.after.reserve(awaited_expected_);
  plan_ = std::move(memory);
  joint_ = 0;
  hazards_.restart(CellMap(problem(), shape(), rank, can_be_in_place(problem())));
}

Plan PlanWriter::take() noexcept {
  steps_expected_ = plan_.steps.size();
  awaited_expected_ = plan_.after.size();
  return std::move(plan_);
}

void PlanWriter::send(std::uint32_t peer, const Range& from, int lane) {
  add({.kind = StepKind::send,
       .from_buffer = from.buffer,
       .lane = static_cast<std::uint8_t>(lane & 0x7F),
       .peer = peer,
       .from = from.first,
       .count = from.count});
}

void PlanWriter::recv(std::uint32_t peer, const Range& to, int lane) {
  add({.kind = StepKind::recv,
       .to_buffer = to.buffer,
       .lane = static_cast<std::uint8_t>(lane & 0x7F),
       .peer = peer,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::recv_reduce(std::uint32_t peer, const Range& from, const Range& to, int lane) {
  add({.kind = StepKind::recv_reduce,
       .from_buffer = from.buffer,
       .to_buffer = to.buffer,
       .lane = static_cast<std::uint8_t>(lane & 0x7F),
       .peer = peer,
       .from = from.first,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::recv_reduce_left(std::uint32_t peer, const Range& from, const Range& to) {
  add({.kind = StepKind::recv_reduce,
       .from_buffer = from.buffer,
       .to_buffer = to.buffer,
       .is_reversed = true,
       .peer = peer,
       .from = from.first,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::copy(const Range& from, const Range& to) {
  if (from == to) return;
  add({.kind = StepKind::copy,
       .from_buffer = from.buffer,
       .to_buffer = to.buffer,
       .from = from.first,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::reduce(const Range& from, const Range& to) {
  add({.kind = StepKind::reduce,
       .from_buffer = from.buffer,
       .to_buffer = to.buffer,
       .from = from.first,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::reduce_left(const Range& from, const Range& to) {
  add({.kind = StepKind::reduce,
       .from_buffer = from.buffer,
       .to_buffer = to.buffer,
       .is_reversed = true,
       .from = from.first,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::add(const Step& step) {
  if (step.count == 0) return;
  if (step.from_buffer == Buffer::scratch) count_copies(step.from);
  if (step.to_buffer == Buffer::scratch) count_copies(step.to);
  Step& added = plan_.steps.emplace_back(step);
  added.after_first = static_cast<std::uint32_t>(plan_.after.size());
  hazards_.add(step, plan_.after);
  if (joint_ > 0 && plan_.after.size() == added.after_first) await_join();
  added.after_count = static_cast<std::uint32_t>(plan_.after.size()) - added.after_first;
}

void PlanWriter::join() {
  joint_ = static_cast<std::uint32_t>(plan_.steps.size());
  hazards_.restart(CellMap(problem(), shape(), rank(), can_be_in_place(problem())), joint_);
}

/// What waits for any step since the join waits for that already.
void PlanWriter::await_join() {
  if (plan_.steps.size() - 1 > joint_) return plan_.after.push_back(joint_);
  for (std::uint32_t i = 0; i < joint_; ++i) plan_.after.push_back(i);
}

void PlanWriter::count_copies(std::uint32_t block) noexcept {
  if (block < plan_.blocks(Buffer::scratch)) return;
  plan_.scratch_copies = block / shape().vector_blocks() + 1;
}

}  // namespace hocket::plan
