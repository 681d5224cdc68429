// The memory of one rank as one row of cells, so that two ranges touch each other exactly where
// they have a cell in common.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "plan/plan.hpp"

namespace hocket::plan {

/// Cells one after the other.
struct CellRun {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;

  [[nodiscard]] std::uint32_t size() const noexcept { return end - begin; }
  friend bool operator==(const CellRun&, const CellRun&) = default;
};
/// The cells of a range, in its order: the second run is empty unless the range goes on at the
/// beginning.
using CellRuns = std::array<CellRun, 2>;

class CellMap {
 public:
  /// `in_place`: in and out are the same memory, one being a part of the other.
  CellMap(const Problem& problem, const Shape& shape, std::uint32_t rank, bool in_place) noexcept
      : vector_(shape.vector_blocks()) {
    const std::uint32_t in = blocks_of(problem, shape, rank, Buffer::in);
    const std::uint32_t out = blocks_of(problem, shape, rank, Buffer::out);
    const std::uint32_t apart = std::max(in, vector_);  // where out is, if it is not in
    loop_ = {std::min(in, vector_), std::min(out, vector_), vector_};
    base_ = {place_in_vector(problem, shape, rank, Buffer::in),
             place_in_vector(problem, shape, rank, Buffer::out) + (in_place ? 0 : apart),
             apart + vector_};
  }

  /// How many cells there are with so many copies of the vector in scratch: a vector, or several,
  /// of in, or of in and out; one of out apart from it; and the copies. No run is in two of them.
  [[nodiscard]] std::uint32_t count(std::uint32_t scratch_copies) const noexcept {
    return base_[2] + scratch_copies * vector_;
  }
  /// Blocks of a vector.
  [[nodiscard]] std::uint32_t vector() const noexcept { return vector_; }
  /// Where in the vector a cell is.
  [[nodiscard]] std::uint32_t position(std::uint32_t cell) const noexcept {
    if (cell < vector_) return cell;
    return cell < 2 * vector_ ? cell - vector_ : cell % vector_;
  }

  [[nodiscard]] std::uint32_t first(const Range& range) const noexcept {
    return base_[static_cast<std::size_t>(range.buffer)] + range.first;
  }
  [[nodiscard]] CellRuns of(const Range& range) const noexcept {
    const std::uint32_t begin = first(range);
    if (range.count == 1) return {{{begin, begin + 1}, {}}};
    const std::uint32_t loop = loop_[static_cast<std::size_t>(range.buffer)];
    const std::uint32_t past = range.first < loop ? range.first : range.first % loop;
    const std::uint32_t room = loop - past;
    if (range.count <= room) return {{{begin, begin + range.count}, {}}};
    return {{{begin, begin + room}, {begin - past, begin - past + range.count - room}}};
  }

 private:
  std::uint32_t vector_;
  std::array<std::uint32_t, 3> loop_ = {};  // of each buffer, blocks that a range goes around in
  std::array<std::uint32_t, 3> base_ = {};  // of each buffer, its first cell
};

}  // namespace hocket::plan
