// Two trees of which each rank is a leaf of one, and the rounds in which pieces come.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "plan/builders/tree.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;

namespace {

std::uint32_t depth(const TwoTrees& trees, std::uint32_t tree, std::uint32_t node) {
  std::uint32_t depth = 0;
  while (node != 0) {
    node = trees.node(tree, node).parent;
    if (++depth > 64) FAIL("a cycle");
  }
  return depth;
}

std::size_t children(const TwoTrees::Node& node) {
  return static_cast<std::size_t>(
      std::ranges::count_if(node.children, [](std::uint32_t child) { return child != no_node; }));
}

}  // namespace

TEST_CASE("both are trees of all nodes, about as low as trees can be") {
  for (std::uint32_t size = 1; size <= 300; ++size) {
    const TwoTrees trees(size);
    for (const std::uint32_t tree : {0U, 1U}) {
      INFO(size << " nodes, tree " << tree);
      std::size_t edges = 0;
      for (std::uint32_t i = 0; i < size; ++i) {
        const TwoTrees::Node& node = trees.node(tree, i);
        edges += children(node);
        REQUIRE((node.parent == no_node) == (i == 0));
        REQUIRE(1U << depth(trees, tree, i) <= 4 * size);
        for (const std::uint32_t child : node.children) {
          if (child != no_node) REQUIRE(trees.node(tree, child).parent == i);
        }
      }
      REQUIRE(edges == size - 1);
      REQUIRE(children(trees.node(tree, 0)) <= 1);
    }
  }
}

TEST_CASE("no node but the root has children in both trees") {
  for (std::uint32_t size = 2; size <= 300; ++size) {
    const TwoTrees trees(size);
    for (std::uint32_t i = 1; i < size; ++i) {
      INFO(size << " nodes, node " << i);
      REQUIRE(std::min(children(trees.node(0, i)), children(trees.node(1, i))) == 0);
    }
  }
}

TEST_CASE("in no round does a node get two pieces, or send two") {
  for (std::uint32_t size = 2; size <= 300; ++size) {
    const TwoTrees trees(size);
    std::map<std::uint32_t, std::set<std::uint32_t>> sends;  // by node: the rounds
    for (std::uint32_t i = 1; i < size; ++i) {
      INFO(size << " nodes, node " << i);
      std::set<std::uint32_t> receives;
      for (std::uint32_t piece = 0; piece < 9; ++piece) {
        const TwoTrees::Node& node = trees.node(trees.tree_of(piece), i);
        const std::uint32_t round = trees.round_of(piece, i);
        REQUIRE(receives.insert(round).second);
        REQUIRE(sends[node.parent].insert(round).second);
        REQUIRE((node.parent == 0 || round > trees.round_of(piece, node.parent)));
      }
    }
  }
}

TEST_CASE("the last round is that of the last piece") {
  CHECK(TwoTrees(1).last_round(5) == 0);
  CHECK(TwoTrees(2).last_round(2) == 2);
  CHECK(TwoTrees(3).last_round(5) == 6);
  for (const std::uint32_t pieces : {1U, 2U, 7U, 8U}) {
    const TwoTrees trees(37);
    std::uint32_t last = 0;
    for (std::uint32_t i = 1; i < 37; ++i) {
      for (std::uint32_t piece = 0; piece < pieces; ++piece) {
        last = std::max(last, trees.round_of(piece, i));
      }
    }
    CHECK(trees.last_round(pieces) == last - (pieces == 1 ? trees.rounds_left_out() : 0));
  }
}
