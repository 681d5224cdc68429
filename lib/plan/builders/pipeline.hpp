// Pipelines: the vector in pieces, which follow each other through a chain or through trees, so
// that all links are busy at once.
#pragma once

#include <algorithm>
#include <tuple>
#include <vector>

#include "plan/builders/phases.hpp"
#include "plan/builders/piece_order.hpp"
#include "plan/builders/tree.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

[[nodiscard]] constexpr std::uint32_t one_for_each_piece(const Problem& problem) noexcept {
  return problem.pieces;
}

[[nodiscard]] constexpr Bound chain_bound(const Problem& problem) noexcept {
  return {.rounds = problem.size - 2 + problem.pieces,
          .blocks_sent = problem.pieces,
          .hops = problem.size - 1U};
}

inline constexpr Algorithm chain_broadcast_algorithm = {
    .name = "chain",
    .operation = Operation::broadcast,
    .summary = "pieces follow each other from rank to rank; for huge vectors and few ranks",
    .build =
        [](PlanWriter& plan) {
          const bool is_root = plan.rank() == plan.problem().root;
          const bool is_last = plan.ahead(1) == plan.problem().root;
          const Buffer held = is_root ? Buffer::in : Buffer::out;
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) {
            if (!is_root) plan.recv(plan.behind(1), {Buffer::out, i, 1});
            if (!is_last) plan.send(plan.ahead(1), {held, i, 1});
            if (is_root) plan.copy({Buffer::in, i, 1}, {Buffer::out, i, 1});
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = chain_bound,
    .only_moves = true,
    .reach = Reach::next,
};

inline constexpr Algorithm chain_reduce_algorithm = {
    .name = "chain",
    .operation = Operation::reduce,
    .summary = "pieces follow each other from rank to rank; for huge vectors and few ranks",
    .build =
        [](PlanWriter& plan) {
          const bool is_root = plan.rank() == plan.problem().root;
          const bool is_first = plan.ahead(1) == plan.problem().root;
          const Buffer sum = is_root ? Buffer::out : Buffer::scratch;
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) {
            if (!is_first) plan.recv_reduce(plan.ahead(1), {Buffer::in, i, 1}, {sum, i, 1});
            if (!is_root) plan.send(plan.behind(1), {is_first ? Buffer::in : sum, i, 1});
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = chain_bound,
    .reach = Reach::next,
};

/// What a rank does with one piece in one tree, and when.
struct TreeStep {
  std::uint32_t round;
  std::uint32_t piece;
  std::uint32_t peer;
  bool is_from_parent;
};

/// All that a rank does to get the pieces and to hand them on, in the order of the rounds.
[[nodiscard]] inline std::vector<TreeStep> tree_steps(PlanWriter& plan) {
  const auto& trees = plan.common<TwoTrees>(plan.size());
  const std::uint32_t root = plan.problem().root;
  const std::uint32_t self = plan.behind(root);
  std::vector<TreeStep> steps;
  for (std::uint32_t piece = 0; piece < plan.problem().pieces; ++piece) {
    const TwoTrees::Node& node = trees.node(trees.tree_of(piece), self);
    const auto add = [&](std::uint32_t other, std::uint32_t child) {
      if (other == no_node) return;
      steps.push_back({trees.round_of(piece, child), piece, (other + root) % plan.size(),
                       other == node.parent});
    };
    add(node.parent, self);
    for (const std::uint32_t child : node.children) add(child, child);
  }
  std::ranges::sort(steps, {}, [](const TreeStep& step) {
    return std::tie(step.round, step.piece, step.peer, step.is_from_parent);
  });
  return steps;
}

/// From where the root has the pieces to `out` everywhere else.
inline void double_tree_broadcast(PlanWriter& plan, Buffer roots) {
  const Buffer held = plan.rank() == plan.problem().root ? roots : Buffer::out;
  for (const TreeStep& step : tree_steps(plan)) {
    if (step.is_from_parent) plan.recv(step.peer, {Buffer::out, step.piece, 1});
    if (!step.is_from_parent) plan.send(step.peer, {held, step.piece, 1});
  }
}

/// A broadcast backwards.
inline void double_tree_reduce(PlanWriter& plan, Buffer sums) {
  std::vector<TreeStep> steps = tree_steps(plan);
  std::ranges::reverse(steps);
  std::vector<Buffer> held(plan.problem().pieces, Buffer::in);
  for (const TreeStep& step : steps) {
    const std::uint32_t piece = plan.problem().pieces - 1 - step.piece;
    if (step.is_from_parent) {
      plan.send(step.peer, {held[piece], piece, 1});
    } else {
      plan.recv_reduce(step.peer, {held[piece], piece, 1}, {sums, piece, 1});
      held[piece] = sums;
    }
  }
}

/// Up or down: a rank sends its own pieces up, and down those of the tree in which it has two
/// children; of three ranks none has two.
[[nodiscard]] inline Bound double_tree_bound(const Problem& problem, bool is_down) {
  const TwoTrees trees(problem.size);
  const std::uint64_t in_one_tree = (problem.pieces + 1ULL) / 2;
  return {.rounds = trees.last_round(problem.pieces),
          .blocks_sent = is_down && !trees.are_chains() ? 2 * in_one_tree : problem.pieces,
          .hops = rounds_min(problem.size)};
}

/// Rounds in which pieces still go up while others go down already.
[[nodiscard]] inline std::uint64_t double_tree_overlap(const Problem& problem) {
  const TwoTrees trees(problem.size);
  if (problem.pieces == 1) return 0;
  if (trees.are_chains()) return problem.size == 2 ? problem.pieces - 1 : 1;
  const bool third_waits = problem.pieces == 3 && trees.rounds_left_out() > 0;
  return third_waits ? 0 : 1;
}

inline constexpr Algorithm double_tree_broadcast_algorithm = {
    .name = "double_tree",
    .operation = Operation::broadcast,
    .summary = "pieces down two binary trees; for many ranks and vectors neither small nor huge",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t all = plan.problem().pieces;
          double_tree_broadcast(plan, Buffer::in);
          if (plan.rank() != plan.problem().root) return;
          plan.copy({Buffer::in, 0, all}, {Buffer::out, 0, all});
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) { return double_tree_bound(problem, true); },
    .only_moves = true,
    .reach = Reach::trees,
};

inline constexpr Algorithm double_tree_reduce_algorithm = {
    .name = "double_tree",
    .operation = Operation::reduce,
    .summary = "pieces up two binary trees; for many ranks and vectors neither small nor huge",
    .build =
        [](PlanWriter& plan) {
          const bool is_root = plan.rank() == plan.problem().root;
          double_tree_reduce(plan, is_root ? Buffer::out : Buffer::scratch);
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) { return double_tree_bound(problem, false); },
    .reach = Reach::trees,
};

inline constexpr Algorithm double_tree_all_reduce_algorithm = {
    .name = "double_tree",
    .operation = Operation::all_reduce,
    .summary = "pieces up two binary trees and down again; for many ranks",
    .build =
        [](PlanWriter& plan) {
          double_tree_reduce(plan, Buffer::out);
          double_tree_broadcast(plan, Buffer::out);
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) -> Bound {
      const Bound up = double_tree_bound(problem, false);
      const Bound down = double_tree_bound(problem, true);
      return {.rounds = up.rounds + down.rounds - double_tree_overlap(problem),
              .blocks_sent = problem.size == 2 ? problem.pieces : up.blocks_sent + down.blocks_sent,
              .hops = up.hops + down.hops,
              // What two ranks send up and down at once takes as long as one after the other.
              .blocks_in_line = 2ULL * problem.pieces};
    },
    .reach = Reach::trees,
};

inline constexpr Algorithm circulant_broadcast_algorithm = {
    .name = "circulant",
    .operation = Operation::broadcast,
    .summary = "pieces in the fewest rounds, at every size; for all but the smallest vectors",
    .build =
        [](PlanWriter& plan) {
          const bool is_root = plan.rank() == plan.problem().root;
          const Buffer held = is_root ? Buffer::in : Buffer::out;
          for (const PieceRound& round : piece_rounds(plan)) {
            if (round.sends()) plan.send(round.to, {held, round.sent_piece, 1});
            if (round.receives()) plan.recv(round.from, {Buffer::out, round.received_piece, 1});
          }
          const std::uint32_t all = plan.problem().pieces;
          if (is_root) plan.copy({Buffer::in, 0, all}, {Buffer::out, 0, all});
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) -> Bound {
      const std::uint32_t rounds = rounds_min(problem.size) - 1 + problem.pieces;
      return {.rounds = rounds, .blocks_sent = rounds};
    },
    .only_moves = true,
    .reach = Reach::rotating,
};

/// A broadcast backwards.
inline constexpr Algorithm circulant_reduce_algorithm = {
    .name = "circulant",
    .operation = Operation::reduce,
    .summary = "pieces in the fewest rounds, at every size; for all but the smallest vectors",
    .build =
        [](PlanWriter& plan) {
          const bool is_root = plan.rank() == plan.problem().root;
          const Buffer sums = is_root ? Buffer::out : Buffer::scratch;
          std::vector<Buffer> held(plan.problem().pieces, Buffer::in);
          std::vector<PieceRound> rounds = piece_rounds(plan);
          std::ranges::reverse(rounds);
          for (const PieceRound& round : rounds) {
            const std::uint32_t sent = round.received_piece;
            const std::uint32_t received = round.sent_piece;
            if (round.receives()) plan.send(round.from, {held[sent], sent, 1});
            if (!round.sends()) continue;
            plan.recv_reduce(round.to, {held[received], received, 1}, {sums, received, 1});
            held[received] = sums;
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = rounds_min(problem.size) - 1ULL + problem.pieces,
              .blocks_sent = problem.pieces};
    },
    .reach = Reach::rotating,
};

}  // namespace hocket::plan
