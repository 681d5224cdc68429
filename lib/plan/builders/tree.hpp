// Two binary trees over the same ranks, where all but one or two ranks have children in one of them
// only: with half of the pieces in each, all ranks send and receive all the time.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "plan/writer.hpp"

namespace hocket::plan {

inline constexpr std::uint32_t no_rank = UINT32_MAX;

/// A rank's place in a tree. The root has one child, which is above all others.
struct TreePlace {
  std::uint32_t parent = no_rank;
  std::array<std::uint32_t, 2> children = {no_rank, no_rank};
};

/// In order: on the lowest level are all odd numbers, on the next those that two divides once, and
/// so on. Number 0 is the root, of `size` in all.
[[nodiscard]] constexpr TreePlace place_in_tree(std::uint32_t number, std::uint32_t size) noexcept {
  TreePlace place;
  if (number == 0) {
    if (size > 1) place.children[0] = std::bit_floor(size - 1);
    return place;
  }
  const std::uint32_t level = number & (~number + 1);
  place.parent = (number ^ level) | (2 * level);
  if (place.parent >= size) place.parent = number ^ level;
  if (level == 1) return place;
  place.children[0] = number - level / 2;
  for (std::uint32_t step = level / 2; step > 0; step /= 2) {
    if (number + step >= size) continue;
    place.children[1] = number + step;
    break;
  }
  return place;
}

/// In which of two trees a rank is where, as ranks. Both have the problem's root.
[[nodiscard]] inline TreePlace place_in_tree_of(const PlanWriter& plan, std::uint32_t tree) noexcept {
  // The others are numbered from 1 on; in the second tree from the other end, or one off, so that
  // the numbers which are odd in one are even in the other.
  const std::uint32_t others = plan.size() - 1;
  const auto swap = [&](std::uint32_t number, std::uint32_t shift) {
    if (tree == 0 || number == 0) return number;
    return others % 2 == 0 ? others + 1 - number : (number - 1 + shift) % others + 1;
  };
  const std::uint32_t root = plan.problem().root;
  const std::uint32_t distance = (plan.rank() + plan.size() - root) % plan.size();
  TreePlace place = place_in_tree(swap(distance, others - 1), plan.size());
  const auto to_rank = [&](std::uint32_t& number) {
    if (number != no_rank) number = (swap(number, 1) + root) % plan.size();
  };
  to_rank(place.parent);
  for (std::uint32_t& child : place.children) to_rank(child);
  return place;
}

}  // namespace hocket::plan
