#include "transports/verbs/channels.hpp"

#include <utility>

#include <fmt/format.h>

#include "transports/common/failures.hpp"

namespace hocket::verbs {

Result<Channel*> Channels::open(Peer& peer, std::uint64_t lane) {
  Channel& channel = of(peer, lane);
  if (channel.id) {
    return Status(StatusCode::already_exists,
                  fmt::format("lane {} to rank {} is open already", lane, peer.rank))
        .with_peer(static_cast<int>(peer.rank));
  }
  if (opened_.is_full()) return common::too_many_channels(opened_.size());
  opened_.make_room();
  channel.id = opened_.next();
  opened_.add(&channel);
  return &channel;
}

void Channels::end(Channel& channel) {
  if (!std::exchange(channel.is_ended, true)) ended_.push_back(&channel);
}

void Channels::bury() noexcept {
  std::erase_if(ended_, [this](const Channel* channel) {
    if (!channel->is_idle()) return false;
    if (channel->id) opened_.remove(*channel->id);
    channel->peer.lanes.erase(channel->lane);
    return true;
  });
}

}  // namespace hocket::verbs
