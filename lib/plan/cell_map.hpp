// The memory of one rank as one row of cells, so that two ranges touch each other exactly where
// they have a cell in common.
#pragma once

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
      : vector_(shape.vector_blocks()),
        blocks_{blocks_of(problem, shape, rank, Buffer::in),
                blocks_of(problem, shape, rank, Buffer::out)},
        base_{place_in_vector(problem, shape, rank, Buffer::in),
              place_in_vector(problem, shape, rank, Buffer::out), 2 * vector_} {
    if (!in_place) base_[1] += vector_;
  }

  /// How many cells there are with so many copies of the vector in scratch: those of in, or of in
  /// and out; of out apart from it; of each copy. No run is in two of them.
  [[nodiscard]] std::uint32_t count(std::uint32_t scratch_copies) const noexcept {
    return (2 + scratch_copies) * vector_;
  }
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
    const CellRun around = wrap(range);
    const std::uint32_t room = around.end - begin;
    if (range.count <= room) return {{{begin, begin + range.count}, {}}};
    return {{{begin, around.end}, {around.begin, around.begin + range.count - room}}};
  }

 private:
  /// All cells of the buffer, or of the copy, that the range is in.
  [[nodiscard]] CellRun wrap(const Range& range) const noexcept {
    if (range.buffer == Buffer::scratch) {
      const std::uint32_t begin = base_[2] + range.first / vector_ * vector_;
      return {begin, begin + vector_};
    }
    const auto buffer = static_cast<std::size_t>(range.buffer);
    return {base_[buffer], base_[buffer] + blocks_[buffer]};
  }

  std::uint32_t vector_;
  std::array<std::uint32_t, 2> blocks_;  // of in and out
  std::array<std::uint32_t, 3> base_;    // the first cell of each buffer
};

}  // namespace hocket::plan
