#include "transports/verbs/channels.hpp"

#include <utility>

#include <fmt/format.h>

#include "transports/tcp/channel_ids.hpp"

namespace hocket::verbs {

Result<Channel*> Channels::open(Peer& peer, std::uint64_t lane) {
  Channel& channel = of(peer, lane);
  if (channel.id) {
    return Status(StatusCode::already_exists,
                  fmt::format("lane {} to rank {} is open already", lane, peer.rank))
        .with_peer(static_cast<int>(peer.rank));
  }
  if (!free_ids_.empty()) {
    channel.id = free_ids_.back();
    free_ids_.pop_back();
    opened_[tcp::place_of(*channel.id)] = &channel;
    return &channel;
  }
  if (opened_.size() == tcp::channel_places) {
    return Status(StatusCode::limit_exceeded,
                  fmt::format("there are {} channels", tcp::channel_places))
        .with_hint("free communicators that are not needed any more");
  }
  opened_.push_back(&channel);
  channel.id = static_cast<ChannelId>(opened_.size() - 1);
  return &channel;
}

Channel* Channels::find(ChannelId id) const noexcept {
  const ChannelId place = tcp::place_of(id);
  Channel* const found = place < opened_.size() ? opened_[place] : nullptr;
  return found != nullptr && found->id == id ? found : nullptr;
}

void Channels::end(Channel& channel) {
  if (!std::exchange(channel.is_ended, true)) ended_.push_back(&channel);
}

void Channels::bury() noexcept {
  std::erase_if(ended_, [this](const Channel* channel) {
    if (!channel->is_idle()) return false;
    if (channel->id) {
      opened_[tcp::place_of(*channel->id)] = nullptr;
      free_ids_.push_back(tcp::next_use(*channel->id));
    }
    channel->peer.lanes.erase(channel->lane);
    return true;
  });
}

}  // namespace hocket::verbs
