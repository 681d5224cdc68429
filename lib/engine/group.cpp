#include "engine/group.hpp"

#include <algorithm>
#include <utility>

namespace hocket::engine {

Status Group::in_world(const Status& why) const noexcept {
  const int peer = accused >= 0 ? accused : why.peer();
  if (peer < 0) return why;
  const auto place = static_cast<std::size_t>(peer);
  return Status(why).with_peer(place < members.size() ? static_cast<int>(members[place]) : peer);
}

void Group::end_among_others(std::uint64_t index) noexcept {
  ended |= std::uint64_t{1} << (index - oldest);
  for (; (ended & 1) != 0; ended >>= 1) {
    ++oldest;
    ++room;
  }
}

Status Group::in_group(Status why, std::uint32_t rank, std::uint32_t peer) noexcept {
  int other = why.peer();
  if (other >= 0 && !members.empty()) {
    const auto found = std::ranges::find(members, static_cast<std::uint32_t>(other));
    other = found == members.end() ? -1 : static_cast<int>(found - members.begin());
  }
  const bool is_self = other == static_cast<int>(rank);
  if (is_self && failure.ok()) accused = other;
  return std::move(why).with_peer(other >= 0 && !is_self ? other : static_cast<int>(peer));
}

}  // namespace hocket::engine
