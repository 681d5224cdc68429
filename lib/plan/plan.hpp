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
  std::uint32_t rank = 0;
  Shape shape = {};
  std::uint32_t scratch_copies = 0;  // of the vector; block i is as large as block i of the vector
  std::vector<Step> steps = {};
  std::vector<std::uint32_t> after = {};  // of all steps, numbers of earlier ones

  /// The steps that this one waits for.
  [[nodiscard]] std::span<const std::uint32_t> awaited(const Step& step) const noexcept {
    return std::span(after).subspan(step.after_first, step.after_count);
  }
  /// Blocks of a buffer at this rank.
  [[nodiscard]] std::uint32_t blocks(Buffer buffer) const noexcept {
    return buffer == Buffer::scratch ? scratch_copies * shape.vector_blocks()
                                     : blocks_of(problem, shape, rank, buffer);
  }
};

/// Whether the blocks from these two on are as large as each other, in whichever buffers, if all
/// chunks are.
[[nodiscard]] constexpr bool have_same_sizes(std::uint32_t blocks_per_chunk, std::uint32_t one,
                                             std::uint32_t other) noexcept {
  return one == other || one % blocks_per_chunk == other % blocks_per_chunk;
}

}  // namespace hocket::plan
