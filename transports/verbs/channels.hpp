// Which channels there are, by peer and lane and by number, and which lanes are over. The record of
// a channel ends with its lane, once nothing refers to it.
#pragma once

#include <cstdint>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "transports/common/channel_table.hpp"
#include "transports/common/lane_set.hpp"
#include "transports/verbs/channel.hpp"

namespace hocket::verbs {

class Channels {
 public:
  /// Has its number from now on. Fails with already_exists.
  [[nodiscard]] Result<Channel*> open(Peer& peer, std::uint64_t lane);
  /// Null when there is none, or none any more.
  [[nodiscard]] Channel* find(ChannelId id) const noexcept { return opened_.find(id); }
  /// Which is made when it is not known yet: messages may come before it is open.
  [[nodiscard]] static Channel& of(Peer& peer, std::uint64_t lane) {
    return peer.lanes.try_emplace(lane, peer, lane).first->second;
  }

  void close_lanes(std::uint64_t first, std::uint64_t last, std::uint64_t reason) {
    closed_lanes_.add(first, last, reason);
  }
  /// By us.
  [[nodiscard]] const common::LaneSet& closed_lanes() const noexcept { return closed_lanes_; }
  /// One of its ends has said so.
  [[nodiscard]] bool is_over(const Peer& peer, std::uint64_t lane) const noexcept {
    return closed_lanes_.contains(lane) || peer.closed_lanes.contains(lane);
  }

  /// Its lane is over.
  void end(Channel& channel);
  /// Destroys those of which that was said, once nothing refers to them.
  void bury() noexcept;

 private:
  common::ChannelTable<Channel*> opened_ = {};
  std::vector<Channel*> ended_ = {};  // to be buried
  common::LaneSet closed_lanes_ = {};
};

}  // namespace hocket::verbs
