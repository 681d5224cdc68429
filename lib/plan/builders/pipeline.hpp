// Pipelines: the vector in pieces, which follow each other through a chain or through trees, so that
// all links are busy at once.
#pragma once

#include "plan/builders/tree.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

[[nodiscard]] constexpr std::uint32_t one_for_each_piece(const Problem& problem) noexcept {
  return problem.pieces;
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
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 2 + problem.pieces, .blocks_sent = problem.pieces};
    },
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
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 2 + problem.pieces, .blocks_sent = problem.pieces};
    },
};

/// Piece i up tree i % 2 to the root.
inline void reduce_piece(PlanWriter& plan, std::uint32_t i) {
  const TreePlace place = place_in_tree_of(plan, i % 2);
  const bool is_root = place.parent == no_rank;
  const bool has_out = is_root || plan.problem().operation == Operation::all_reduce;
  const Range sum = {has_out ? Buffer::out : Buffer::scratch, i, 1};
  Range held = {Buffer::in, i, 1};
  for (const std::uint32_t child : place.children) {
    if (child == no_rank) continue;
    plan.recv_reduce(child, held, sum);
    held = sum;
  }
  if (!is_root) plan.send(place.parent, held);
}

/// Piece i, which the root has there, down tree i % 2 to all.
inline void broadcast_piece(PlanWriter& plan, std::uint32_t i, Buffer roots) {
  const TreePlace place = place_in_tree_of(plan, i % 2);
  const bool is_root = place.parent == no_rank;
  if (!is_root) plan.recv(place.parent, {Buffer::out, i, 1});
  for (const std::uint32_t child : place.children) {
    if (child != no_rank) plan.send(child, {is_root ? roots : Buffer::out, i, 1});
  }
}

inline constexpr Algorithm double_tree_broadcast_algorithm = {
    .name = "double_tree",
    .operation = Operation::broadcast,
    .summary = "pieces down two binary trees; for many ranks and vectors neither small nor huge",
    .build =
        [](PlanWriter& plan) {
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) {
            broadcast_piece(plan, i, Buffer::in);
            if (plan.rank() == plan.problem().root) {
              plan.copy({Buffer::in, i, 1}, {Buffer::out, i, 1});
            }
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 2 + problem.pieces, .blocks_sent = problem.pieces};
    },
};

inline constexpr Algorithm double_tree_reduce_algorithm = {
    .name = "double_tree",
    .operation = Operation::reduce,
    .summary = "pieces up two binary trees; for many ranks and vectors neither small nor huge",
    .build =
        [](PlanWriter& plan) {
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) reduce_piece(plan, i);
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 2 + problem.pieces, .blocks_sent = problem.pieces};
    },
};

inline constexpr Algorithm double_tree_all_reduce_algorithm = {
    .name = "double_tree",
    .operation = Operation::all_reduce,
    .summary = "pieces up two binary trees and down again; for many ranks",
    .build =
        [](PlanWriter& plan) {
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) reduce_piece(plan, i);
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) {
            broadcast_piece(plan, i, Buffer::out);
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = [](const Problem& problem) -> Bound {
      return {.rounds = problem.size - 2 + problem.pieces, .blocks_sent = problem.pieces};
    },
};

}  // namespace hocket::plan
