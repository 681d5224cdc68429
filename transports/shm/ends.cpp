// How channels and peers end.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <sys/epoll.h>

#include "transports/shm/transport.hpp"

namespace hocket::shm {
namespace {

/// Closed channels are removed once there are so many.
constexpr std::size_t buried_at_once = 16;

}  // namespace

void ShmTransport::look_for_ends() noexcept {
  meet_readers();
  for (Peer* const peer : active_) {
    if (peer->untold() > 0) tell_read(*peer);
  }
  std::array<epoll_event, 16> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
  for (int i = 0; i < count; ++i) {
    const std::uint64_t rank = events.at(static_cast<std::size_t>(i)).data.u64;
    if (rank == bell_event) continue;
    Peer& peer = *peers_[rank];
    if (read(peer)) lose_process(peer);
  }
  bury();
}

void ShmTransport::lose_process(Peer& peer) noexcept {
  lose(peer, described([&] {
         return peer_lost(peer.rank(), "has died: its process ended")
             .with_hint("see why its process has ended");
       }));
}

void ShmTransport::lose(Peer& peer, const Status& why) noexcept {
  peer.lost = why;
  std::erase(active_, &peer);
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, peer.process(), nullptr);
  for (auto& [key, channel] : by_lane_) {
    if (key.second == peer.rank()) end(*channel, why);
  }
}

/// Nothing comes behind what has arrived, and nobody receives what goes.
void ShmTransport::end(Channel& channel, const Status& why) noexcept {
  if (channel.is_over() || !channel.end.ok()) return;
  channel.end = why;
  while (!channel.sends.empty()) complete(channel.sends.pop(), why);
  channel.sent = 0;
  // What waits behind parts that have come waits for the rest of their message.
  const bool is_waiting = channel.arrived.empty() || !channel.receives.empty();
  if (channel.is_open && is_waiting) fail(channel, why, false);
}

void ShmTransport::fail(Channel& channel, Status why, bool has_farewell,
                        std::uint64_t tag) noexcept {
  const bool is_told = channel.is_closed || !channel.sends.empty() || !channel.receives.empty();
  channel.reason = pack_reason(why);
  if (why.peer() < 0) why = std::move(why).with_peer(static_cast<int>(channel.peer));
  channel.failure = std::move(why);
  while (!channel.sends.empty()) complete(channel.sends.pop(), channel.failure);
  while (!channel.receives.empty()) {
    done_.push({.token = channel.receives.pop().token,
                .tag = std::exchange(tag, 0),
                .status = channel.failure});
  }
  channel.sent = channel.received = 0;
  forget_incoming(channel);
  channel.withholds_farewell = has_farewell;
  if (is_told) release_farewell(channel);
}

/// The peer is told only after an op or a close() of this rank has been: else what the peer does
/// about it could fail other channels here before anybody knows the cause.
void ShmTransport::release_farewell(Channel& channel) noexcept {
  if (!std::exchange(channel.withholds_farewell, false)) return;
  channel.owes_farewell = true;
  if (!channel.is_blocked) say_farewell(channel);
}

void ShmTransport::forget_incoming(Channel& channel) noexcept {
  Peer* const peer = peers_[channel.peer].get();
  if (peer == nullptr) return;
  while (!channel.arrived.empty()) {
    channel.arrived.pop();
    be_done(*peer, peer->incoming[channel.their_number]);
  }
  if (!std::exchange(channel.is_known, false)) return;
  tell_done(*peer, peer->incoming[channel.their_number]);
  peer->incoming[channel.their_number].channel = nullptr;
}

void ShmTransport::close(ChannelId id, const Status& reason) noexcept {
  Channel* const found = channels_.find(id);
  if (found == nullptr || std::exchange(found->is_closed, true)) return;
  closing_.push_back(found);
  left_[found->peer].add(found->lane, found->lane);
  if (!found->is_over()) {
    fail(*found, described([&] {
      return reason.ok() ? Status(StatusCode::aborted, "the channel was closed") : reason;
    }),
         true);
  }
  release_farewell(*found);
  // It may wait long to be buried.
  found->sends = {};
  found->receives = {};
  found->arrived = {};
  ring();
}

void ShmTransport::close_lanes(std::uint64_t first, std::uint64_t last,
                               const Status& reason) noexcept {
  for (auto each = by_lane_.lower_bound({first, 0});
       each != by_lane_.end() && each->first.first <= last;) {
    Channel& channel = *(each++)->second;
    if (channel.is_open) {
      close(channel.id, reason);
    } else {
      forget_incoming(channel);
      by_lane_.erase({channel.lane, channel.peer});
    }
  }
  closed_.add(first, last, pack_reason(reason));
  // Whole ranges merge with those beside them, as single lanes would not.
  for (common::LaneSet& left : left_) {
    if (!left.ranges().empty()) left.add(first, last);
  }
  board_.note_closed({.first = first, .last = last, .reason = pack_reason(reason)});
  meet_readers();
  for (Peer* const peer : active_) mark(*peer);
  ring();
}

/// Channels that we have closed, once the peer is done with all that they sent.
void ShmTransport::bury() noexcept {
  std::erase_if(closing_, [this](Channel* each) {
    Channel& channel = *each;
    Peer* const peer = peers_[channel.peer].get();
    reclaim(channel);
    const bool is_lost = peer == nullptr || !peer->lost.ok();
    const bool is_read =
        !channel.has_said_farewell || is_lost || peer->has_read(channel.farewell_note);
    const bool is_awaited = channel.owes_farewell || !is_read || !channel.on_the_way.empty();
    if (channel.is_blocked || (!is_lost && is_awaited)) return false;
    while (!channel.on_the_way.empty()) {
      const OnTheWay part = channel.on_the_way.pop();
      if (part.slot.data != nullptr) board_.give_back(part.slot);
    }
    if (channel.filling.data != nullptr) board_.give_back(channel.filling);
    board_.give_back(channel.reading);
    free_numbers_.push_back(channel.number);
    channels_.remove(channel.id);
    by_lane_.erase({channel.lane, channel.peer});
    return true;
  });
  bury_at_ = std::max(buried_at_once, 2 * closing_.size());
}

}  // namespace hocket::shm
