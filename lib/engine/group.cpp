#include "engine/group.hpp"

#include <algorithm>
#include <utility>

namespace hocket::engine {

Status Group::in_world(const Status& why) const noexcept {
  const int peer = why.peer();
  if (peer < 0 || static_cast<std::size_t>(peer) >= members.size()) return why;
  return Status(why).with_peer(static_cast<int>(members[static_cast<std::size_t>(peer)]));
}

Status Group::in_group(Status why, std::uint32_t rank, std::uint32_t peer) const noexcept {
  int other = why.peer();
  if (other >= 0 && !members.empty()) {
    const auto found = std::ranges::find(members, static_cast<std::uint32_t>(other));
    other = found == members.end() ? -1 : static_cast<int>(found - members.begin());
  }
  const bool is_another = other >= 0 && other != static_cast<int>(rank);
  return std::move(why).with_peer(is_another ? other : static_cast<int>(peer));
}

}  // namespace hocket::engine
