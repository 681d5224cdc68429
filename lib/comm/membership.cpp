#include "comm/membership.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "record/layout.hpp"

namespace hocket::comm {

Membership Membership::of_world(std::uint32_t rank, std::uint32_t size) {
  std::vector<std::uint32_t> members(size);
  std::iota(members.begin(), members.end(), 0U);
  return {0, std::move(members), rank};
}

Membership Membership::part(std::uint64_t id, std::span<const std::uint32_t> ranks) const {
  std::vector<std::uint32_t> members;
  members.reserve(ranks.size());
  for (const std::uint32_t each : ranks) members.push_back(members_[each]);
  const auto own = std::ranges::find(ranks, position_.rank);
  return {id, std::move(members), static_cast<std::uint32_t>(own - ranks.begin())};
}

Membership Membership::twin() const { return {id_ | twin_bit, members_, position_.rank}; }

std::uint64_t Membership::unique_id() const noexcept {
  const std::uint64_t number = (id_ & ~twin_bit) << 32 | members_.front();
  return (id_ & twin_bit) == 0 ? number : number | record::device_bit;
}

std::vector<std::uint32_t> Membership::others() const {
  std::vector<std::uint32_t> others = members_;
  others.erase(others.begin() + position_.rank);
  return others;
}

std::optional<std::uint32_t> Membership::rank_of(std::uint32_t in_world) const noexcept {
  const auto found = std::ranges::find(members_, in_world);
  if (found == members_.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - members_.begin());
}

Status Membership::in_group(Status why) const noexcept {
  if (why.peer() < 0) return why;
  const auto rank = rank_of(static_cast<std::uint32_t>(why.peer()));
  return rank ? std::move(why).with_peer(static_cast<int>(*rank)) : why;
}

}  // namespace hocket::comm
