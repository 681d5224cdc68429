// Numbers of channels. The low bits are a place in a list of channels; those above them change each
// time that a place is used again, so that late ops meet no other channel.
#pragma once

#include "hocket/transport.hpp"

namespace hocket::tcp {

inline constexpr ChannelId channel_places = ChannelId{1} << 20;

[[nodiscard]] constexpr ChannelId place_of(ChannelId id) noexcept { return id % channel_places; }

/// For the next channel in its place.
[[nodiscard]] constexpr ChannelId next_use(ChannelId id) noexcept {
  return (id + channel_places) % channel_ids_end;
}

}  // namespace hocket::tcp
