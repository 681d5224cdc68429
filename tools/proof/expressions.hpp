// What stands in the blocks of ranks that all do the same: not numbers in its place, but the trees
// in which contributions were combined.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "plan/problem.hpp"

namespace hocket::proof {

/// Keeps each tree once for all ranks: where rank 0 has a tree, rank r has the same one with all
/// contributions from r ranks further on, and to r n-ths of the vector further on. Which of two is
/// left and which right makes no difference, as to a reduction.
class Expressions {
 public:
  /// A tree, as it is that many ranks further on. Two that are equal are the same expression. Of
  /// two that are not, the expressions differ as well, or combine contributions to different
  /// positions.
  struct Value {
    std::uint32_t tree = 0;  // 0: undefined
    std::uint32_t turn = 0;  // less than ranks

    [[nodiscard]] bool is_defined() const noexcept { return tree != 0; }
    friend bool operator==(const Value&, const Value&) = default;
  };

  /// The vector has the same number of blocks for each rank.
  Expressions(std::uint32_t size, std::uint32_t vector_blocks)
      : size_(size), vector_(vector_blocks), seen_(size) {}

  /// Of a rank to a position of the vector.
  [[nodiscard]] Value contribution(std::uint32_t rank, std::uint32_t position) const noexcept;
  [[nodiscard]] Value combine(Value one, Value other);
  [[nodiscard]] Value turned(Value value, std::uint32_t ranks) const noexcept {
    return {value.tree, (value.turn + ranks) % size_};
  }
  /// Whether it is made of the contribution of each rank to the position, each once, and of nothing
  /// else.
  [[nodiscard]] bool has_each_once(Value value, std::uint32_t position);

 private:
  /// The left one as it is, and the right one turned.
  struct Tree {
    std::uint32_t left;
    std::uint32_t right;
    std::uint32_t turn;

    friend bool operator==(const Tree&, const Tree&) = default;
  };
  struct Hash {
    [[nodiscard]] std::size_t operator()(const Tree& tree) const noexcept;
  };

  [[nodiscard]] bool is_contribution(Value value) const noexcept { return value.tree <= vector_; }
  [[nodiscard]] std::uint32_t position_of(Value contribution) const noexcept;

  std::uint32_t size_;
  std::uint32_t vector_;
  // Tree i + 1 is what rank 0 contributes to position i of the vector, and behind these are
  std::vector<Tree> combined_;
  std::unordered_map<Tree, std::uint32_t, Hash> numbers_;  // of those combined
  std::vector<std::uint8_t> seen_;                         // by rank
};

}  // namespace hocket::proof
