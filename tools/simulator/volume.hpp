// How many bytes a range of blocks is, without a list of the blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/layout.hpp"
#include "plan/plan.hpp"

namespace hocket::sim {

class Volume {
 public:
  /// Of plans of this problem and shape. `sizes` as for a Layout: in elements, and to outlive this;
  /// if there are none, `elements` of the vector are divided among its chunks. A barrier has none.
  Volume(const plan::Problem& problem, const plan::Shape& shape, std::uint64_t elements,
         plan::ChunkSizes sizes, std::uint32_t element_bytes);

  /// Of a range of that rank's plan.
  [[nodiscard]] std::uint64_t bytes(std::uint32_t rank, const plan::Range& range) const noexcept;

 private:
  /// Elements in front of a block, of those of a whole vector.
  [[nodiscard]] std::uint64_t before(std::uint32_t block) const noexcept;
  [[nodiscard]] std::uint64_t elements_between(std::uint32_t rank, plan::Buffer buffer,
                                               std::uint32_t begin,
                                               std::uint32_t end) const noexcept;

  plan::Problem problem_;
  plan::Shape shape_;
  std::uint64_t element_bytes_;
  plan::ChunkSizes pairs_;  // of an all-to-all that was given sizes
  std::uint64_t largest_pair_ = 0;
  std::vector<std::uint64_t> begin_;  // of each chunk, and behind the last
};

}  // namespace hocket::sim
