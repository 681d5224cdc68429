// What one rank does for a collective operation, as data: built by an algorithm, and then proved,
// timed, drawn or run.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/problem.hpp"
#include "plan/step.hpp"

namespace hocket::plan {

struct Plan {
  std::string_view algorithm = {};  // a name of the catalog, which outlives the plan
  Problem problem = {};
  int rank = 0;
  Shape shape = {};
  std::uint32_t scratch_copies = 0;  // of the vector; block i is as large as block i of the vector
  std::vector<Step> steps = {};
  std::vector<std::uint32_t> after = {};  // of all steps, numbers of earlier ones

  [[nodiscard]] std::span<const std::uint32_t> before(const Step& step) const noexcept {
    return std::span(after).subspan(step.after_first, step.after_count);
  }
  /// Blocks of a buffer at this rank.
  [[nodiscard]] std::uint32_t blocks(Buffer buffer) const noexcept {
    return buffer == Buffer::scratch ? scratch_copies * shape.vector_blocks()
                                     : blocks_of(problem, shape, rank, buffer);
  }
};

/// The parts of a range that stand one behind the other: two when it goes on at the beginning.
struct Parts {
  Range first;
  Range second;  // empty, mostly
};
[[nodiscard]] constexpr Parts split(const Range& range, std::uint32_t buffer_blocks,
                                    const Shape& shape) noexcept {
  const std::uint32_t vector = shape.vector_blocks();
  std::uint32_t begin = 0;
  std::uint32_t end = buffer_blocks;
  if (range.buffer == Buffer::scratch && vector > 0) {
    begin = range.first / vector * vector;
    end = begin + vector;
  }
  const std::uint32_t room = end - range.first;
  if (range.count <= room) return {range, {range.buffer, begin, 0}};
  return {{range.buffer, range.first, room}, {range.buffer, begin, range.count - room}};
}

}  // namespace hocket::plan
