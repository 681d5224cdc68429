// Two binary trees over the same ranks, such that no rank has children in both: with half of the
// pieces in each, every rank can send one piece and receive one in every round (Sanders, Speck and
// Träff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan").
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace hocket::plan {

inline constexpr std::uint32_t no_node = UINT32_MAX;

/// Nodes are counted from the root, which is 0 and has one child in each tree.
class TwoTrees {
 public:
  struct Node {
    std::uint32_t parent = no_node;
    std::array<std::uint32_t, 2> children = {no_node, no_node};
    /// The round in which the tree's first piece comes.
    std::uint32_t round = 0;
  };

  explicit TwoTrees(std::uint32_t size);

  [[nodiscard]] const Node& node(std::uint32_t tree, std::uint32_t number) const noexcept {
    return nodes_[tree][number];
  }
  /// Pieces go down the trees in turns; of three ranks none has two children, so that one tree, a
  /// chain, does alone.
  [[nodiscard]] bool are_chains() const noexcept { return nodes_[0].size() <= 3; }
  [[nodiscard]] std::uint32_t tree_of(std::uint32_t piece) const noexcept {
    return are_chains() ? 0 : piece % 2;
  }
  /// In which a node gets a piece; the first round is 1.
  [[nodiscard]] std::uint32_t round_of(std::uint32_t piece, std::uint32_t number) const noexcept {
    return node(tree_of(piece), number).round + (are_chains() ? piece : piece / 2 * 2);
  }
  /// In which all have so many pieces.
  [[nodiscard]] std::uint32_t last_round(std::uint32_t pieces) const;
  /// By how much a single piece is faster than the first of many, which leave the rounds between
  /// them to the other tree.
  [[nodiscard]] std::uint32_t rounds_left_out() const;

 private:
  void settle_rounds_from(std::uint32_t tree, std::uint32_t number);
  [[nodiscard]] std::uint32_t sibling(std::uint32_t tree, std::uint32_t number) const noexcept;
  void time(std::uint32_t tree);

  std::array<std::vector<Node>, 2> nodes_;
  std::array<std::vector<std::uint8_t>, 2> odd_;  // by node: whether it gets pieces in odd rounds
};

}  // namespace hocket::plan
