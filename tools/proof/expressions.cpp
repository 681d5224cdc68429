#include "proof/expressions.hpp"

#include <algorithm>
#include <utility>

namespace hocket::proof {

Expressions::Value Expressions::contribution(std::uint32_t rank,
                                             std::uint32_t position) const noexcept {
  const std::uint32_t behind = rank * (vector_ / size_);
  const std::uint32_t of_rank_0 = (position + vector_ - behind) % vector_;
  return {of_rank_0 + 1, rank};
}

std::uint32_t Expressions::position_of(Value contribution) const noexcept {
  return (contribution.tree - 1 + contribution.turn * (vector_ / size_)) % vector_;
}

Expressions::Value Expressions::combine(Value one, Value other) {
  const auto from_to = [this](Value from, Value to) {
    return (to.turn + size_ - from.turn) % size_;
  };
  const bool is_turned_less = one.tree == other.tree && from_to(other, one) < from_to(one, other);
  if (other.tree < one.tree || is_turned_less) std::swap(one, other);
  const Tree tree{one.tree, other.tree, from_to(one, other)};
  const auto next = static_cast<std::uint32_t>(vector_ + 1 + combined_.size());
  const auto [found, is_new] = numbers_.try_emplace(tree, next);
  if (is_new) combined_.push_back(tree);
  return {found->second, one.turn};
}

/// No more of the tree is looked at than there are ranks, however large it is.
bool Expressions::has_each_once(Value value, std::uint32_t position) {
  std::ranges::fill(seen_, 0);
  std::uint32_t count = 0;
  std::vector<Value> left{value};
  while (!left.empty()) {
    const Value each = left.back();
    left.pop_back();
    if (!is_contribution(each)) {
      const Tree& tree = combined_[each.tree - vector_ - 1];
      left.push_back(turned({tree.right, tree.turn}, each.turn));
      left.push_back({tree.left, each.turn});
      continue;
    }
    if (position_of(each) != position || seen_[each.turn] != 0) return false;
    seen_[each.turn] = 1;
    ++count;
  }
  return count == size_;
}

std::size_t Expressions::Hash::operator()(const Tree& tree) const noexcept {
  constexpr std::uint64_t far_apart = 0x9e3779b97f4a7c15;
  std::uint64_t bits = (std::uint64_t{tree.left} << 32 | tree.right) * far_apart + tree.turn;
  bits = (bits ^ bits >> 32) * far_apart;
  return bits ^ bits >> 29;
}

}  // namespace hocket::proof
