// Where all ranks do the same, each as seen from its own place: the plan of a rank made of that of
// rank 0.
#pragma once

#include <array>
#include <cstdint>

#include "plan/plan.hpp"

namespace hocket::plan {

/// How the plan of rank r follows from that of rank 0. *Rotated*: with each peer r ranks further
/// on, and each block of a vector r n-ths of the vector; what is one chunk stays.
enum class Symmetry : std::uint8_t {
  none,
  rotated,              // scratch as well, inside each of its copies of the vector
  rotated_but_scratch,  // whose blocks have their numbers as seen from the rank
  /// As far as the last message, with r copies of the vector further on in scratch, which has one
  /// for each rank; and what is behind it, for which all of that is over, is the same on all.
  rotated_then_same,
};

/// By so many ranks, of plans of one problem whose vector has the same number of blocks for each
/// rank.
class Rotation {
 public:
  Rotation(const Problem& problem, const Shape& shape, Symmetry symmetry,
           std::uint32_t ranks) noexcept;

  [[nodiscard]] std::uint32_t peer(std::uint32_t of_rank_0) const noexcept {
    return around(of_rank_0 + ranks_, size_);
  }
  [[nodiscard]] std::uint32_t block(Buffer buffer, std::uint32_t first) const noexcept {
    const std::uint32_t blocks = blocks_[static_cast<std::size_t>(buffer)];
    if (blocks == 0) return first;
    const std::uint32_t past = first < loop_ ? first : first % loop_;
    return first - past + around(past + blocks, loop_);
  }
  [[nodiscard]] Range range(const Range& of_rank_0) const noexcept {
    return {of_rank_0.buffer, block(of_rank_0.buffer, of_rank_0.first), of_rank_0.count};
  }
  [[nodiscard]] Step step(const Step& of_rank_0) const noexcept;

 private:
  [[nodiscard]] static std::uint32_t around(std::uint32_t number, std::uint32_t end) noexcept {
    return number < end ? number : number - end;
  }

  std::uint32_t ranks_;
  std::uint32_t size_;
  std::uint32_t loop_;                        // blocks that it goes around in
  std::array<std::uint32_t, 3> blocks_ = {};  // by buffer
};

/// Of rank 0's plan: the first step that is the same on all ranks, or behind the last.
[[nodiscard]] std::uint32_t first_same(const Plan& plan, Symmetry symmetry) noexcept;

/// Makes rank 0's plan that of another rank.
void rotate(Plan& plan, Symmetry symmetry, std::uint32_t rank) noexcept;

}  // namespace hocket::plan
