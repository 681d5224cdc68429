#include "plan/writer.hpp"

#include <algorithm>

namespace hocket::plan {

PlanWriter::PlanWriter(std::string_view algorithm, const Problem& problem, std::uint32_t rank,
                       std::uint32_t blocks_per_chunk)
    : plan_{.algorithm = algorithm,
            .problem = problem,
            .rank = rank,
            .shape = shape_of(problem, blocks_per_chunk)},
      hazards_(Cells(problem, plan_.shape, rank, can_be_in_place(problem))) {}

void PlanWriter::send(std::uint32_t peer, const Range& from, int lane) {
  add({.kind = StepKind::send,
       .from_buffer = from.buffer,
       .lane = static_cast<std::uint8_t>(lane),
       .peer = peer,
       .from = from.first,
       .count = from.count});
}

void PlanWriter::recv(std::uint32_t peer, const Range& to, int lane) {
  add({.kind = StepKind::recv,
       .to_buffer = to.buffer,
       .lane = static_cast<std::uint8_t>(lane),
       .peer = peer,
       .to = to.first,
       .count = to.count});
}

void PlanWriter::recv_reduce(std::uint32_t peer, const Range& from, const Range& to, int lane) {
  add({.kind = StepKind::recv_reduce,
       .from_buffer = from.buffer,
       .to_buffer = to.buffer,
       .lane = static_cast<std::uint8_t>(lane),
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

void PlanWriter::add(Step step) {
  if (step.count == 0) return;
  for (const Range& range : {step.source(), step.target()}) {
    if (range.buffer != Buffer::scratch) continue;
    const std::uint32_t copy = range.first / std::max(shape().vector_blocks(), 1U);
    plan_.scratch_copies = std::max(plan_.scratch_copies, copy + 1);
  }
  const std::span<const std::uint32_t> before = hazards_.add(step);
  step.after_first = static_cast<std::uint32_t>(plan_.after.size());
  step.after_count = static_cast<std::uint32_t>(before.size());
  plan_.after.insert(plan_.after.end(), before.begin(), before.end());
  plan_.steps.push_back(step);
}

}  // namespace hocket::plan
