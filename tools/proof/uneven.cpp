#include "proof/uneven.hpp"

#include <algorithm>

namespace hocket::proof {

using plan::Buffer;
using plan::CellRuns;
using plan::Plan;
using plan::Range;
using plan::Step;

void Uneven::start(std::span<const Plan> plans) {
  plans_ = plans;
  allows_ = true;
  is_all_to_all_ = plans.front().problem.operation == plan::Operation::all_to_all;
  cells_.clear();
  for (const Plan& plan : plans) {
    cells_.emplace_back(plan.problem, plan.shape, plan.rank, false);
  }
}

void Uneven::run(std::span<const Event> events) {
  allows_ = allows_ &&
            std::ranges::all_of(events, [this](const Event& event) { return keeps_size(event); });
}

bool Uneven::keeps_size(const Event& event) const {
  const Step& from = plans_[event.step.rank].steps[event.step.step];
  const StepId& last = event.last();
  const Step& to = plans_[last.rank].steps[last.step];
  if (is_all_to_all_) {
    return is_chunk(from.source(), Buffer::in, last.rank) &&
           is_chunk(to.target(), Buffer::out, event.step.rank);
  }
  return are_at_one_place(event.step, from.source(), last, to.target()) &&
         (!to.has_source() || are_at_one_place(last, to.source(), last, to.target()));
}

bool Uneven::are_at_one_place(const StepId& one, const Range& first, const StepId& other,
                              const Range& second) const {
  const plan::CellMap& here = cells_[one.rank];
  const plan::CellMap& there = cells_[other.rank];
  if (here.position(here.first(first)) != there.position(there.first(second))) return false;
  if (first.count == 1) return true;
  // They go on at the beginning after as many blocks, and at the same beginning.
  const CellRuns runs = here.of(first);
  const CellRuns others = there.of(second);
  return runs[0].size() == others[0].size() &&
         (runs[1].size() == 0 || here.position(runs[1].begin) == there.position(others[1].begin));
}

bool Uneven::is_chunk(const Range& range, Buffer buffer, std::uint32_t chunk) const {
  const std::uint32_t blocks = plans_.front().shape.blocks_per_chunk;
  return range.buffer == buffer && range.first / blocks == chunk &&
         range.first % blocks + range.count <= blocks;
}

}  // namespace hocket::proof
