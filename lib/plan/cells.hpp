// The memory of one rank as one row of cells, so that two ranges touch each other exactly where
// they have a cell in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/plan.hpp"

namespace hocket::plan {

class Cells {
 public:
  struct Run {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    [[nodiscard]] std::uint32_t size() const noexcept { return end - begin; }
  };

  /// `in_place`: in and out are the same memory, one being a part of the other.
  Cells(const Problem& problem, const Shape& shape, std::uint32_t rank, bool in_place) noexcept
      : vector_(shape.vector_blocks()) {
    const std::uint32_t in = blocks_of(problem, shape, rank, Buffer::in);
    const std::uint32_t out = blocks_of(problem, shape, rank, Buffer::out);
    apart_ = std::max(in, vector_);
    loop_ = {std::min(in, vector_), std::min(out, vector_), vector_};
    base_ = {place_in_vector(problem, shape, rank, Buffer::in),
             place_in_vector(problem, shape, rank, Buffer::out) + (in_place ? 0 : apart_),
             apart_ + vector_};
  }

  /// How many cells there are with so many copies of the vector in scratch.
  [[nodiscard]] std::uint32_t count(std::uint32_t scratch_copies) const noexcept {
    return base_[2] + scratch_copies * vector_;
  }

  /// In, or in and out; out apart from it; scratch. No run is in two of them.
  static constexpr std::size_t region_count = 3;
  [[nodiscard]] std::size_t region(std::uint32_t cell) const noexcept {
    return cell < apart_ ? 0 : cell < base_[2] ? 1 : 2;
  }

  /// Where in the vector a cell is.
  [[nodiscard]] std::uint32_t position(std::uint32_t cell) const noexcept { return cell % vector_; }

  /// The cells of a range, in its order: two runs where it goes on at the beginning, of which the
  /// second is empty otherwise.
  [[nodiscard]] std::array<Run, 2> of(const Range& range) const noexcept {
    const auto buffer = static_cast<std::size_t>(range.buffer);
    const std::uint32_t past = range.first % loop_[buffer];
    const std::uint32_t first = base_[buffer] + range.first;
    const std::uint32_t begin = first - past;
    const std::uint32_t end = begin + loop_[buffer];
    const std::uint32_t room = end - first;
    if (range.count <= room) return {{{first, first + range.count}, {begin, begin}}};
    return {{{first, end}, {begin, begin + range.count - room}}};
  }

 private:
  std::uint32_t vector_;
  std::uint32_t apart_ = 0;                 // where out is, if it is not in
  std::array<std::uint32_t, 3> loop_ = {};  // of each buffer, blocks that a range goes around in
  std::array<std::uint32_t, 3> base_ = {};  // of each buffer, its first cell
};

}  // namespace hocket::plan
