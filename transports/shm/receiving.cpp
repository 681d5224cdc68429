// Receiving: takes notes from peers, and delivers messages to receives.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "transports/common/op_memory.hpp"
#include "transports/shm/transport.hpp"

namespace hocket::shm {

/// Whether the peer is active still.
bool ShmTransport::read(Peer& peer) noexcept {
  const Header& header = peer.header();
  // Before its notes: what it wrote before it left or closed something is there then.
  const bool has_left = header.has_left.load(std::memory_order_acquire) != 0;
  const std::uint32_t closed = header.closed_count.load(std::memory_order_acquire);
  while (const Note* const note = peer.front()) {
    const Heard heard(*note);
    try {
      take(peer, heard);
    } catch (...) {
      if (!starve(peer, heard, status_of_exception())) break;
    }
    peer.drop();
  }
  if (peer.untold() >= notes_untold_max) tell_read(peer);
  if (closed != peer.closed_seen) take_closed(peer, closed);
  const bool is_empty = peer.front() == nullptr;
  if (has_left && is_empty)
    lose(peer, described([&] { return peer_lost(peer.rank(), "has left"); }));
  return peer.lost.ok();
}

/// Without memory for a note its channel fails. False: there is none yet, so the note must wait.
bool ShmTransport::starve(Peer& peer, const Heard& note, const Status& why) noexcept {
  if (note.kind == Note::Kind::open) {
    Channel* const channel = find(peer.rank(), note.tag);
    if (channel == nullptr) return false;
    // A number that another channel had before.
    if (note.channel < peer.incoming.size()) peer.incoming[note.channel] = {};
    if (!channel->is_over()) fail(*channel, why, true);
    return true;
  }
  Incoming& from = peer.incoming[note.channel];
  if (from.channel != nullptr) fail(*from.channel, why, true);
  be_done(peer, from);
  return true;
}

void ShmTransport::take(Peer& peer, const Heard& note) {
  if (note.kind == Note::Kind::open) return take_open(peer, note);
  if (note.channel >= peer.incoming.size()) return;
  Incoming& from = peer.incoming[note.channel];
  if (from.reading == nullptr) return;
  if (note.kind == Note::Kind::close) {
    Channel* const channel = std::exchange(from.channel, nullptr);
    if (channel == nullptr) return;
    channel->is_known = false;
    tell_done(peer, from);
    return end(*channel, described([&] { return closed_by_peer(peer.rank(), note.tag); }));
  }
  if (from.channel == nullptr) return be_done(peer, from);
  Channel& channel = *from.channel;
  Arrived part = {.bytes = note.bytes,
                  .is_last = note.is_last,
                  .is_in_one_slot = note.is_in_one_slot,
                  .tag = note.tag};
  if (note.is_inline) {
    part.bytes = std::min<std::uint32_t>(part.bytes, inline_bytes_max);
    part.copy = note.data;
  } else {
    part.data = peer.at(note.offset, note.bytes);
    if (part.data == nullptr) throw std::bad_alloc();
  }
  channel.arrived.push(part);
  has_moved_ = true;
  guarded(channel, [&] { deliver(channel); });
}

void ShmTransport::take_open(Peer& peer, const Heard& note) {
  if (note.channel >= common::ChannelTable<Channel*>::places_max) return;
  std::byte* const reading = peer.at(note.offset, sizeof(Reading));
  if (reading == nullptr) throw std::bad_alloc();
  if (note.channel >= peer.incoming.size()) {
    peer.incoming.resize(std::max<std::size_t>(note.channel + 1, 2 * peer.incoming.size()));
  }
  const std::uint64_t lane = note.tag;
  const bool is_over = closed_.contains(lane) || left_[peer.rank()].contains(lane);
  Channel* channel = is_over ? nullptr : find(peer.rank(), lane);
  if (channel == nullptr && !is_over) channel = &make_channel(peer.rank(), lane);
  Incoming& from = peer.incoming[note.channel];
  from.reading = reinterpret_cast<Reading*>(reading);
  from.done = from.told = 0;
  from.channel = nullptr;
  if (channel == nullptr || channel->is_over()) return;
  if (channel->is_known) peer.incoming[channel->their_number].channel = nullptr;
  channel->their_number = note.channel;
  channel->is_known = true;
  from.channel = channel;
}

void ShmTransport::be_done(Peer& peer, Incoming& from, bool may_wait) noexcept {
  if (!from.lent.empty()) return from.lent.push(0);
  ++from.done;
  if (!may_wait || from.done - from.told >= parts_untold_max) tell_done(peer, from);
}

void ShmTransport::tell_done(Peer& peer, Incoming& from) noexcept {
  if (from.reading == nullptr || from.told == from.done) return;
  from.told = from.done;
  from.reading->done.store(from.done, std::memory_order_release);
  mark(peer);
}

void ShmTransport::deliver(Channel& channel) {
  if (channel.is_over()) return;
  while (!channel.arrived.empty() && !channel.receives.empty()) {
    Peer& peer = *peers_[channel.peer];
    Incoming& from = peer.incoming[channel.their_number];
    const Arrived& part = channel.arrived.front();
    const TransportOp& op = channel.receives.front();
    const bool is_small = part.data == nullptr;
    std::uint64_t bytes = part.bytes;
    std::uint64_t parts = 1;
    bool is_last = part.is_last;
    const bool lends = op.may_lend && !is_small && part.is_in_one_slot && channel.received == 0;
    if (lends) {
      while (!is_last && parts < channel.arrived.size()) {
        const Arrived& next = channel.arrived[channel.arrived.begin() + parts++];
        if (next.data != part.data + bytes) return fail_for_nonsense(channel);
        bytes += next.bytes;
        is_last = next.is_last;
      }
      if (!is_last) break;  // the rest of it is on its way
    }
    if (bytes > op.bytes() - channel.received) {
      const std::uint64_t tag = part.tag;
      return fail(channel,
                  Status(StatusCode::mismatch,
                         fmt::format("rank {} sent a message of more than {} bytes, which its "
                                     "receive has room for",
                                     channel.peer, op.bytes())),
                  true, tag);
    }
    const std::byte* const data = is_small ? part.copy.data() : part.data;
    if (lends) {
      from.lent.reserve(notes_on_the_way_max + 1);
      loans_.push_back({.data = data,
                        .peer = channel.peer,
                        .number = channel.their_number,
                        .note = from.lent.end()});
      from.lent.push(1);
    } else {
      common::OpMemory{op.first, op.rest}.copy_from(data, channel.received,
                                                    channel.received + bytes);
    }
    channel.received += bytes;
    if (is_last) {
      done_.push({.token = op.token,
                  .bytes = channel.received,
                  .tag = part.tag,
                  .lent = lends ? data : nullptr});
      channel.receives.pop();
      channel.received = 0;
    }
    for (std::uint64_t i = 0; i < parts; ++i) {
      channel.arrived.pop();
      if (!lends || i > 0) be_done(peer, from, is_small && channel.is_known);
    }
  }
  // What it sent before its end is here, but for the rest of a message that never comes.
  const bool is_all = channel.arrived.empty() || !channel.receives.empty();
  if (is_all && !channel.end.ok()) fail(channel, channel.end, false);
}

void ShmTransport::fail_for_nonsense(Channel& channel) noexcept {
  fail(channel, described([&] {
         return Status(
             StatusCode::protocol_error,
             fmt::format("rank {} sent a message whose parts don't fit together", channel.peer));
       }),
       true);
}

/// Up to so many that it has ever closed, of which its header has the last.
void ShmTransport::take_closed(Peer& peer, std::uint32_t count) noexcept {
  const Header& header = peer.header();
  const std::uint32_t news = std::min(count - peer.closed_seen, closed_kept);
  for (std::uint32_t i = count - news; i != count; ++i) {
    const ClosedLanes lanes = header.closed.at(i % closed_kept);
    order_all();
    const std::uint32_t now = header.closed_count.load(std::memory_order_relaxed);
    if (now - i >= closed_kept) continue;  // it is being written over
    peer.their_closed.add(lanes.first, lanes.last, lanes.reason);
    for (auto each = by_lane_.lower_bound({lanes.first, 0});
         each != by_lane_.end() && each->first.first <= lanes.last; ++each) {
      if (each->first.second != peer.rank()) continue;
      end(*each->second, described([&] { return closed_by_peer(peer.rank(), lanes.reason); }));
    }
  }
  peer.closed_seen = count;
}

void ShmTransport::tell_read(Peer& peer) noexcept {
  peer.tell_read();
  mark(peer);
}

}  // namespace hocket::shm
