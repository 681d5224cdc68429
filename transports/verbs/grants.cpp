#include "transports/verbs/grants.hpp"

#include <algorithm>
#include <utility>

namespace hocket::verbs {
namespace {

/// On their way straight to the memory of receives.
constexpr std::uint32_t direct_most = 256;

}  // namespace

Grants::Grants(Slots& slots, std::uint32_t slots_most, Regions& regions)
    : slots_(slots), regions_(regions), grants_(slots_most + direct_most) {
  for (std::uint32_t i = slots_most; i < grants_.size(); ++i) free_.push_back(i);
}

/// A message of one piece that may be lent is reduced from where it comes, which is the slot.
std::optional<Grants::Room> Grants::room_for(const ReceiveOp& op, const Arrival& arrival) {
  const std::uint64_t bytes = std::min<std::uint64_t>(piece_bytes, arrival.bytes - arrival.granted);
  const bool is_lent = op.may_lend && arrival.bytes <= piece_bytes;
  if (!is_lent && !free_.empty()) {
    const MemoryPart memory = op.memory.stretch(arrival.granted, bytes);
    Region* region = op.device;
    if (region == nullptr) region = regions_.find(memory.data, memory.bytes, true);
    if (region != nullptr) {
      const std::uint32_t number = free_.back();
      free_.pop_back();
      return Room{.grant = number, .region = region, .memory = memory};
    }
  }
  if (op.device != nullptr) return std::nullopt;
  const auto slot = slots_.take();
  if (!slot) return std::nullopt;
  return Room{.grant = *slot, .memory = {slots_.memory(*slot), bytes}};
}

void Grants::give(const Room& room, Channel& channel, std::uint64_t message, std::uint64_t offset) {
  grants_[room.grant] = {.channel = &channel,
                         .region = room.region,
                         .message = message,
                         .offset = offset,
                         .bytes = room.memory.bytes};
  ++channel.peer.granted;
  ++channel.granted;
  if (room.region == nullptr) return;
  Regions::pin(*room.region);
  ++channel.receives[message].pins;
}

const Grant* Grants::find(const Peer& peer, std::uint32_t number) const noexcept {
  if (number >= grants_.size()) return nullptr;
  const Channel* const channel = grants_[number].channel;
  return channel != nullptr && &channel->peer == &peer ? &grants_[number] : nullptr;
}

void Grants::lend(std::uint32_t number) noexcept {
  const Grant grant = std::exchange(grants_[number], {});
  --grant.channel->peer.granted;
  --grant.channel->granted;
}

void Grants::end(std::uint32_t number) noexcept {
  const Grant grant = grants_[number];
  lend(number);
  if (grant.region == nullptr) return slots_.give(number);
  free_.push_back(number);
  regions_.unpin(*grant.region);
  --grant.channel->receives[grant.message].pins;
}

void Grants::end_all_of(const Peer& peer) noexcept {
  for (std::uint32_t i = 0; i < grants_.size(); ++i) {
    if (find(peer, i) != nullptr) end(i);
  }
}

}  // namespace hocket::verbs
