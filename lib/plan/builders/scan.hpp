// Prefix reductions: a rank gets the sum of the ranks up to it (scan), or of those below it
// (exscan), of which rank 0 has none and gets nothing.
#pragma once

#include <cstdint>

#include "plan/builders/phases.hpp"
#include "plan/builders/pipeline.hpp"
#include "plan/catalog.hpp"

namespace hocket::plan {

/// Rank 0 sends in every round, and nobody sends more.
[[nodiscard]] inline Bound doubling_scan_bound(const Problem& problem) noexcept {
  return {.rounds = rounds_min(problem.size), .blocks_sent = rounds_min(problem.size)};
}

/// In each round a rank has the sum of twice as many ranks up to it (Hillis and Steele). It is in
/// two copies of scratch by turns, as in a recursive doubling.
inline constexpr Algorithm recursive_doubling_scan_algorithm = {
    .name = "recursive_doubling",
    .operation = Operation::scan,
    .summary = "fewest rounds, all bytes in each; for all but large vectors",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t rank = plan.rank();
          Range held = {Buffer::in, 0, 1};
          std::uint32_t turn = 0;
          for (std::uint32_t skip = 1; skip < plan.size(); skip *= 2) {
            if (rank + skip < plan.size()) plan.send(rank + skip, held);
            if (rank < skip) continue;
            // Out may be the same memory as in, which is still being sent in the first round.
            const bool is_result = rank < 2 * skip && held.buffer != Buffer::in;
            const Range sum =
                is_result ? Range{Buffer::out, 0, 1} : Range{Buffer::scratch, turn++ % 2, 1};
            plan.recv_reduce_left(rank - skip, held, sum);
            held = sum;
          }
          plan.copy(held, {Buffer::out, 0, 1});
        },
    .bound = doubling_scan_bound,
    .keeps_order = true,
    .reach = Reach::powers,
};

/// The sum that a rank sends has its own in it, and the one that it keeps has not.
inline constexpr Algorithm recursive_doubling_exscan_algorithm = {
    .name = "recursive_doubling",
    .operation = Operation::exscan,
    .summary = "fewest rounds, all bytes in each; for all but large vectors",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t rank = plan.rank();
          const Range own = {Buffer::in, 0, 1};
          const Range below = {Buffer::scratch, 0, 1};
          const Range with_own = {Buffer::scratch, 1, 1};
          Range sent = own;
          for (std::uint32_t skip = 1; skip < plan.size(); skip *= 2) {
            if (rank + skip < plan.size()) plan.send(rank + skip, sent);
            if (rank < skip) continue;
            if (skip == 1) plan.recv(rank - 1, below);
            if (skip > 1) plan.recv_reduce_left(rank - skip, below, below);
            if (rank + 2 * skip >= plan.size()) continue;
            plan.copy(own, with_own);
            plan.reduce_left(below, with_own);
            sent = with_own;
          }
          if (rank > 0) plan.copy(below, {Buffer::out, 0, 1});
        },
    .bound = doubling_scan_bound,
    .keeps_order = true,
    .reach = Reach::powers,
};

inline constexpr Algorithm chain_scan_algorithm = {
    .name = "chain",
    .operation = Operation::scan,
    .summary = "pieces follow each other from rank to rank; for large vectors",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t rank = plan.rank();
          const Buffer sum = rank == 0 ? Buffer::in : Buffer::out;
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) {
            if (rank > 0) plan.recv_reduce_left(rank - 1, {Buffer::in, i, 1}, {Buffer::out, i, 1});
            if (rank + 1 < plan.size()) plan.send(rank + 1, {sum, i, 1});
            if (rank == 0) plan.copy({Buffer::in, i, 1}, {Buffer::out, i, 1});
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = chain_bound,
    .keeps_order = true,
    .reach = Reach::next,
};

/// A rank's own is copied before anything comes, so that what comes can be added to it and go on.
inline constexpr Algorithm chain_exscan_algorithm = {
    .name = "chain",
    .operation = Operation::exscan,
    .summary = "pieces follow each other from rank to rank; for large vectors",
    .build =
        [](PlanWriter& plan) {
          const std::uint32_t rank = plan.rank();
          const bool is_last = rank + 1 == plan.size();
          const Buffer sum = rank == 0 ? Buffer::in : Buffer::scratch;
          for (std::uint32_t i = 0; i < plan.problem().pieces; ++i) {
            if (rank > 0 && !is_last) plan.copy({Buffer::in, i, 1}, {sum, i, 1});
            if (rank > 0) plan.recv(rank - 1, {Buffer::out, i, 1});
            if (is_last) continue;
            if (rank > 0) plan.reduce_left({Buffer::out, i, 1}, {sum, i, 1});
            plan.send(rank + 1, {sum, i, 1});
          }
        },
    .blocks_per_chunk = one_for_each_piece,
    .bound = chain_bound,
    .keeps_order = true,
    .reach = Reach::next,
};

}  // namespace hocket::plan
