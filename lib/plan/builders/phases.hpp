// Parts that several algorithms are made of. All of them work on a vector of as many blocks as
// there are ranks, of which block i belongs to rank i at the end of a reduce-scatter and at the
// beginning of an all-gather.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/builders/team.hpp"
#include "plan/writer.hpp"

namespace hocket::plan {

/// Where a reduce-scatter puts what it has reduced so far: block i into block i of a buffer as
/// large as the vector; and where the result goes.
struct Partials {
  Buffer buffer = Buffer::out;
  Range result = {};
};

/// In `out` where that is as large as the vector, else in scratch.
[[nodiscard]] Partials partials_of(const PlanWriter& plan) noexcept;

/// Of an all-gather or a gather. Where others wait for the block itself, it comes last.
void own_block_to_out(PlanWriter& plan);

/// Each rank has its own block when it begins, and the others' in `out` when it ends.
void ring_all_gather(PlanWriter& plan, const Range& own);
void ring_reduce_scatter(PlanWriter& plan);

void direct_reduce_scatter(PlanWriter& plan);
void direct_all_gather(PlanWriter& plan, const Range& own);

/// Of the circulant graph: 1, …, ceil(size / 4), ceil(size / 2), and the size itself.
[[nodiscard]] std::vector<std::uint32_t> skips_of(std::uint32_t size);

/// Träff's: as many rounds as a tree of this size is high, whatever the size, and no block is sent
/// twice. Ranks that differ by a skip talk to each other; each skip is half of the one before,
/// rounded up.
void circulant_reduce_scatter(PlanWriter& plan);
void circulant_all_gather(PlanWriter& plan);
/// The same among some of the ranks, with what they begin with in `from`.
void circulant_reduce_scatter(Team team, Buffer from, const Partials& partials);
void circulant_all_gather(Team team);
/// Messages of either of the two, one behind the other, where the blocks of so many members are a
/// stretch of a larger vector: what is beyond its end goes in a second message.
[[nodiscard]] std::uint32_t circulant_messages(std::uint32_t size);

/// How far from the root a rank is, around the ring.
[[nodiscard]] std::uint32_t from_root(const PlanWriter& plan) noexcept;

/// Up and down a binomial tree. A rank with others below it has their blocks, and its own, in
/// `held` at the time; a rank without only `own`, which is where the own block comes from or goes
/// to.
void binomial_gather(PlanWriter& plan, Buffer held, const Range& own);
void binomial_scatter(PlanWriter& plan, Buffer held, const Range& own);

/// Down a binomial tree, whole, from the member who is the root.
void binomial_broadcast(PlanWriter& plan, const Team& team, std::uint32_t root, const Range& held);
/// To how many others the member sends that is so far behind the root.
[[nodiscard]] std::uint32_t binomial_children(std::uint32_t distance, std::uint32_t size) noexcept;

/// Up a binomial tree, to the member who is the root: what each has in `held` goes into sums. Gives
/// where a member's sum is, at the root that of all.
Range binomial_reduce(PlanWriter& plan, const Team& team, std::uint32_t root, Range held,
                      const Range& sum);

/// ceil(log2(size)): the fewest rounds in which every rank can hear of every other.
[[nodiscard]] std::uint32_t rounds_min(std::uint32_t size) noexcept;

}  // namespace hocket::plan
