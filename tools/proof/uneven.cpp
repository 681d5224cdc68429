#include "proof/uneven.hpp"

namespace hocket::proof {

using plan::Buffer;
using plan::CellMap;
using plan::CellRuns;
using plan::Range;
using plan::Step;

void Uneven::start(const plan::Problem& problem, const plan::Shape& shape) {
  is_all_to_all_ = problem.operation == plan::Operation::all_to_all;
  blocks_per_chunk_ = shape.blocks_per_chunk;
  cells_.clear();
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
    cells_.emplace_back(problem, shape, rank, false);
  }
}

bool Uneven::keeps_size(std::uint32_t sender, const Step& from, std::uint32_t receiver,
                        const Step& to) const {
  if (is_all_to_all_) {
    return is_chunk(from.source(), Buffer::in, receiver) &&
           is_chunk(to.target(), Buffer::out, sender);
  }
  const CellMap& here = cells_[sender];
  const CellMap& there = cells_[receiver];
  return are_at_one_place(here, from.source(), there, to.target()) &&
         (!to.has_source() || are_at_one_place(there, to.source(), there, to.target()));
}

bool Uneven::are_at_one_place(const CellMap& here, const Range& first, const CellMap& there,
                              const Range& second) noexcept {
  if (here.position(here.first(first)) != there.position(there.first(second))) return false;
  if (first.count == 1) return true;
  // They go on at the beginning after as many blocks, and at the same beginning.
  const CellRuns runs = here.of(first);
  const CellRuns others = there.of(second);
  return runs[0].size() == others[0].size() &&
         (runs[1].size() == 0 || here.position(runs[1].begin) == there.position(others[1].begin));
}

bool Uneven::is_chunk(const Range& range, Buffer buffer, std::uint32_t chunk) const noexcept {
  return range.buffer == buffer && range.first / blocks_per_chunk_ == chunk &&
         range.first % blocks_per_chunk_ + range.count <= blocks_per_chunk_;
}

}  // namespace hocket::proof
