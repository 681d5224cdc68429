#include "plan/builders/phases.hpp"

#include <algorithm>
#include <bit>

namespace hocket::plan {
namespace {

/// A place in a binomial tree, by how far from the root it is.
struct TreePlace {
  std::uint32_t to_parent;  // how far
  std::uint32_t subtree;    // how many ranks are here and below
};

TreePlace place_at(std::uint32_t distance, std::uint32_t size) noexcept {
  const std::uint32_t left = size - distance;  // all at the root
  const std::uint32_t lowest_bit = distance & (~distance + 1);
  return {lowest_bit, distance == 0 ? left : std::min(left, lowest_bit)};
}

}  // namespace

std::vector<std::uint32_t> skips_of(std::uint32_t size) {
  std::vector<std::uint32_t> skips{size};
  while (skips.back() > 1) skips.push_back((skips.back() + 1) / 2);
  return {skips.rbegin(), skips.rend()};
}

Partials partials_of(const PlanWriter& plan) noexcept {
  const std::uint32_t rank = plan.rank();
  const bool has_vector = blocks_of(plan.problem(), plan.shape(), rank, Buffer::out) == plan.size();
  if (has_vector) return {Buffer::out, {Buffer::out, rank, 1}};
  const bool has_block = plan.problem().operation == Operation::reduce_scatter;
  return {Buffer::scratch, has_block ? Range{Buffer::out, 0, 1} : Range{Buffer::scratch, rank, 1}};
}

std::uint32_t rounds_min(std::uint32_t size) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(size - 1));
}

void own_block_to_out(PlanWriter& plan) {
  plan.copy({Buffer::in, 0, 1}, {Buffer::out, plan.rank(), 1});
}

void direct_reduce_scatter(PlanWriter& plan) {
  const Partials partials = partials_of(plan);
  const std::uint32_t rank = plan.rank();
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    plan.send(plan.ahead(i), {Buffer::in, plan.ahead(i), 1});
    plan.recv_reduce(plan.behind(i), i == 1 ? Range{Buffer::in, rank, 1} : partials.result,
                     partials.result);
  }
}

void direct_all_gather(PlanWriter& plan, const Range& own) {
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    plan.send(plan.ahead(i), own);
    plan.recv(plan.behind(i), {Buffer::out, plan.behind(i), 1});
  }
}

void ring_reduce_scatter(PlanWriter& plan) {
  const Partials partials = partials_of(plan);
  const std::uint32_t next = plan.ahead(1);
  const std::uint32_t previous = plan.behind(1);
  for (std::uint32_t i = 1; i < plan.size(); ++i) {
    const bool is_last = i == plan.size() - 1;
    const std::uint32_t sent = plan.behind(i);
    const std::uint32_t received = plan.behind(i + 1);
    plan.send(next, {i == 1 ? Buffer::in : partials.buffer, sent, 1});
    plan.recv_reduce(previous, {Buffer::in, received, 1},
                     is_last ? partials.result : Range{partials.buffer, received, 1});
  }
}

void ring_all_gather(PlanWriter& plan, const Range& own) {
  for (std::uint32_t i = 0; i < plan.size() - 1; ++i) {
    plan.send(plan.ahead(1), i == 0 ? own : Range{Buffer::out, plan.behind(i), 1});
    plan.recv(plan.behind(1), {Buffer::out, plan.behind(i + 1), 1});
  }
}

void circulant_reduce_scatter(Team team, Buffer from, const Partials& partials) {
  const std::vector<std::uint32_t> skips = skips_of(team.size());
  for (std::size_t i = skips.size() - 1; i > 0; --i) {
    // Of the blocks from the own one on, those behind the skip go, and come for those before it.
    const std::uint32_t skip = skips[i - 1];
    const std::uint32_t moved = skips[i] - skip;
    const std::uint32_t peer = team.behind(skip);
    team.send(team.ahead(skip), from, team.ahead(skip), moved);
    if (i == 1) return team.recv_reduce(peer, from, partials.result);
    team.recv_reduce(peer, from, partials.buffer, team.self(), moved);
    // Of an odd number, one is left for which nothing came: from now on all are in one place.
    if (moved < skip) team.copy(from, partials.buffer, team.ahead(moved));
    from = partials.buffer;
  }
  team.copy(from, partials.result);  // of one, who is all there are
}

void circulant_all_gather(Team team) {
  const std::vector<std::uint32_t> skips = skips_of(team.size());
  for (std::size_t i = 1; i < skips.size(); ++i) {
    const std::uint32_t skip = skips[i - 1];
    const std::uint32_t moved = skips[i] - skip;
    team.send(team.behind(skip), Buffer::out, team.self(), moved);
    team.recv(team.ahead(skip), Buffer::out, team.ahead(skip), moved);
  }
}

std::uint32_t circulant_messages(std::uint32_t size) {
  const std::vector<std::uint32_t> skips = skips_of(size);
  std::uint32_t messages = 0;
  for (std::size_t i = 1; i < skips.size(); ++i) messages += skips[i] - skips[i - 1] > 1 ? 2U : 1U;
  return messages;
}

void circulant_reduce_scatter(PlanWriter& plan) {
  circulant_reduce_scatter(Team(plan), Buffer::in, partials_of(plan));
}

void circulant_all_gather(PlanWriter& plan) { circulant_all_gather(Team(plan)); }

std::uint32_t from_root(const PlanWriter& plan) noexcept {
  return plan.behind(plan.problem().root);
}

void binomial_gather(PlanWriter& plan, Buffer held, const Range& own) {
  const std::uint32_t distance = from_root(plan);
  const TreePlace here = place_at(distance, plan.size());
  if (here.subtree == 1) return plan.send(plan.behind(here.to_parent), own);
  plan.copy(own, {held, plan.rank(), 1});
  for (std::uint32_t skip = 1; skip < here.subtree; skip *= 2) {
    const std::uint32_t child = plan.ahead(skip);
    plan.recv(child, {held, child, place_at(distance + skip, plan.size()).subtree});
  }
  if (distance > 0) plan.send(plan.behind(here.to_parent), {held, plan.rank(), here.subtree});
}

void binomial_scatter(PlanWriter& plan, Buffer held, const Range& own) {
  const std::uint32_t distance = from_root(plan);
  const TreePlace here = place_at(distance, plan.size());
  if (here.subtree == 1) return plan.recv(plan.behind(here.to_parent), own);
  if (distance > 0) plan.recv(plan.behind(here.to_parent), {held, plan.rank(), here.subtree});
  for (std::uint32_t skip = std::bit_ceil(here.subtree) / 2; skip > 0; skip /= 2) {
    const std::uint32_t child = plan.ahead(skip);
    plan.send(child, {held, child, place_at(distance + skip, plan.size()).subtree});
  }
  plan.copy({held, plan.rank(), 1}, own);
}

void binomial_broadcast(PlanWriter& plan, const Team& team, std::uint32_t root, const Range& held) {
  const std::uint32_t distance = team.behind(root);
  for (std::uint32_t skip = 1; skip < team.size(); skip *= 2) {
    if (distance >= skip && distance < 2 * skip) {
      plan.recv(team.rank_of(team.behind(skip)), held);
    } else if (distance < skip && distance + skip < team.size()) {
      plan.send(team.rank_of(team.ahead(skip)), held);
    }
  }
}

std::uint32_t binomial_children(std::uint32_t distance, std::uint32_t size) noexcept {
  std::uint32_t children = 0;
  for (std::uint32_t skip = std::bit_ceil(distance + 1); distance + skip < size; skip *= 2) {
    ++children;
  }
  return children;
}

Range binomial_reduce(PlanWriter& plan, const Team& team, std::uint32_t root, Range held,
                      const Range& sum) {
  const std::uint32_t distance = team.behind(root);
  for (std::uint32_t skip = std::bit_ceil(team.size()) / 2; skip > 0; skip /= 2) {
    if (distance >= skip && distance < 2 * skip) {
      plan.send(team.rank_of(team.behind(skip)), held);
    } else if (distance < skip && distance + skip < team.size()) {
      plan.recv_reduce(team.rank_of(team.ahead(skip)), held, sum);
      held = sum;
    }
  }
  return held;
}

}  // namespace hocket::plan
