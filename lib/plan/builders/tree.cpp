#include "plan/builders/tree.hpp"

#include <algorithm>
#include <bit>

namespace hocket::plan {
namespace {

constexpr std::uint8_t unsettled = 2;

/// In order: on the lowest level are all odd numbers, on the next those that two divides once, and
/// so on. Number 0 is above all others, the root.
TwoTrees::Node place(std::uint32_t number, std::uint32_t size) {
  TwoTrees::Node node;
  if (number == 0) {
    if (size > 1) node.children[0] = std::bit_floor(size - 1);
    return node;
  }
  const std::uint32_t level = number & (~number + 1);
  node.parent = (number ^ level) | (2 * level);
  if (node.parent >= size) node.parent = number ^ level;
  if (level == 1) return node;
  node.children[0] = number - level / 2;
  std::uint32_t step = level / 2;
  while (step > 0 && number + step >= size) step /= 2;
  if (step > 0) node.children[1] = number + step;
  return node;
}

/// The number in the second tree of a node and the other way round, so that numbers which are odd
/// in one tree are even in the other, but for one node at most that has no children in both.
std::uint32_t renumber(std::uint32_t number, std::uint32_t others, bool back) {
  if (number == 0) return 0;
  if (others % 2 == 0) return others + 1 - number;
  return (number - 1 + (back ? 1 : others - 1)) % others + 1;
}

}  // namespace

TwoTrees::TwoTrees(std::uint32_t size) {
  const std::uint32_t others = size - 1;
  for (std::uint32_t number = 0; number < size; ++number) {
    nodes_[0].push_back(place(number, size));
    Node node = place(renumber(number, others, false), size);
    const auto back = [&](std::uint32_t& other) {
      if (other != no_node) other = renumber(other, others, true);
    };
    back(node.parent);
    for (std::uint32_t& child : node.children) back(child);
    nodes_[1].push_back(node);
  }
  for (auto& tree : odd_) tree.assign(size, unsettled);
  for (std::uint32_t number = 1; number < size; ++number) {
    if (odd_[0][number] == unsettled) settle_rounds_from(0, number);
  }
  for (std::uint32_t tree = 0; tree < 2; ++tree) time(tree);
}

/// The other node that the parent of this one sends to, in any tree.
std::uint32_t TwoTrees::sibling(std::uint32_t tree, std::uint32_t number) const noexcept {
  const Node& parent = nodes_[tree][nodes_[tree][number].parent];
  return parent.children[0] == number ? parent.children[1] : parent.children[0];
}

/// What a node gets from its two parents comes in different rounds, and so does what a parent sends
/// to its two children: from one choice all others follow, along a path or around a circle.
void TwoTrees::settle_rounds_from(std::uint32_t tree, std::uint32_t number) {
  const auto walk = [this](std::uint32_t at, std::uint32_t node, std::uint8_t odd) {
    while (node != no_node && odd_[at][node] == unsettled) {
      odd_[at][node] = odd;
      at = 1 - at;  // the same node's edge in the other tree
      if (odd_[at][node] != unsettled) return;
      odd = odd == 0 ? 1 : 0;
      odd_[at][node] = odd;
      const bool is_below_root = nodes_[at][node].parent == 0;
      const std::uint32_t next = is_below_root ? nodes_[1 - at][0].children[0] : sibling(at, node);
      if (is_below_root) at = 1 - at;
      node = next;
      odd = odd == 0 ? 1 : 0;
    }
  };
  const bool is_below_root = nodes_[tree][number].parent == 0;
  const std::uint32_t other =
      is_below_root ? nodes_[1 - tree][0].children[0] : sibling(tree, number);
  walk(tree, number, 0);
  walk(is_below_root ? 1 - tree : tree, other, 1);
}

void TwoTrees::time(std::uint32_t tree) {
  std::vector<std::uint32_t> open = {0};
  while (!open.empty()) {
    const Node& node = nodes_[tree][open.back()];
    open.pop_back();
    for (const std::uint32_t child : node.children) {
      if (child == no_node) continue;
      const std::uint32_t next = node.round + 1;
      const bool is_others = !are_chains() && next % 2 != odd_[tree][child];
      nodes_[tree][child].round = next + (is_others ? 1 : 0);
      open.push_back(child);
    }
  }
}

std::uint32_t TwoTrees::last_round(std::uint32_t pieces) const {
  if (nodes_[0].size() == 1) return 0;
  std::uint32_t last = 0;
  for (std::uint32_t piece = pieces - std::min(pieces, 2U); piece < pieces; ++piece) {
    for (std::uint32_t number = 1; number < nodes_[0].size(); ++number) {
      last = std::max(last, round_of(piece, number));
    }
  }
  return pieces == 1 ? last - rounds_left_out() : last;
}

std::uint32_t TwoTrees::rounds_left_out() const {
  std::uint32_t last_alone = 0;
  std::uint32_t last = 0;
  std::vector<std::uint32_t> alone(nodes_[0].size(), 0);  // by node: the round without the others
  std::vector<std::uint32_t> open = {0};
  while (!open.empty()) {
    const std::uint32_t parent = open.back();
    open.pop_back();
    last_alone = std::max(last_alone, alone[parent]);
    last = std::max(last, nodes_[0][parent].round);
    for (const std::uint32_t child : nodes_[0][parent].children) {
      if (child == no_node) continue;
      const std::uint32_t other = sibling(0, child);
      const bool is_second = other != no_node && nodes_[0][other].round < nodes_[0][child].round;
      alone[child] = alone[parent] + (is_second ? 2 : 1);
      open.push_back(child);
    }
  }
  return last - last_alone;
}

}  // namespace hocket::plan
