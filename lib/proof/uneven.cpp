#include "proof/uneven.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "plan/cells.hpp"

namespace hocket::plan {
namespace {

class Places {
 public:
  explicit Places(std::span<const Plan> plans) : plans_(plans) {
    for (const Plan& plan : plans) {
      cells_.emplace_back(plan.problem, plan.shape, plan.rank, false);
    }
  }

  [[nodiscard]] bool keeps(const Event& event) const {
    const Step& from = step(event.step);
    const StepId end = event.is_message ? event.receive : event.step;
    const Step& to = step(end);
    if (plans_.front().problem.operation == Operation::all_to_all) {
      return is_chunk(from.source(), Buffer::in, end.rank) &&
             is_chunk(to.target(), Buffer::out, event.step.rank);
    }
    const Positions target = positions(end.rank, to.target());
    return positions(event.step.rank, from.source()) == target &&
           (!to.has_source() || positions(end.rank, to.source()) == target);
  }

 private:
  using Positions = std::array<std::uint32_t, 4>;

  [[nodiscard]] const Step& step(StepId id) const { return plans_[id.rank].steps[id.step]; }

  /// Where in the vector each run begins, and how long it is.
  [[nodiscard]] Positions positions(std::uint32_t rank, const Range& range) const {
    const std::array<Cells::Run, 2> runs = cells_[rank].of(range);
    const std::uint32_t second = runs[1].size() > 0 ? cells_[rank].position(runs[1].begin) : 0;
    return {cells_[rank].position(runs[0].begin), runs[0].size(), second, runs[1].size()};
  }

  [[nodiscard]] bool is_chunk(const Range& range, Buffer buffer, std::uint32_t chunk) const {
    const std::uint32_t blocks = plans_.front().shape.blocks_per_chunk;
    return range.buffer == buffer && range.first / blocks == chunk &&
           range.first % blocks + range.count <= blocks;
  }

  std::span<const Plan> plans_;
  std::vector<Cells> cells_;  // by rank
};

}  // namespace

bool allow_uneven_chunks(std::span<const Plan> plans, const Schedule& schedule) {
  const Places places(plans);
  return std::ranges::all_of(schedule.events,
                             [&](const Event& event) { return places.keeps(event); });
}

}  // namespace hocket::plan
