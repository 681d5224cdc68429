// Sending: writes messages into notes and slots, and takes the slots back.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "transports/common/op_memory.hpp"
#include "transports/shm/transport.hpp"

namespace hocket::shm {

void ShmTransport::mark(Peer& peer) noexcept {
  if (std::exchange(peer.is_dirty, true)) return;
  dirty_.push_back(&peer);
}

void ShmTransport::ring() noexcept {
  if (dirty_.empty()) return;
  order_all();
  for (Peer* const peer : dirty_) {
    peer->is_dirty = false;
    peer->ring();
  }
  dirty_.clear();
}

void ShmTransport::block(Channel& channel) noexcept {
  if (std::exchange(channel.is_blocked, true)) return;
  blocked_.push_back(&channel);
}

void ShmTransport::retry_blocked() noexcept {
  retried_.swap(blocked_);
  for (Channel* const channel : retried_) {
    channel->is_blocked = false;
    guarded(*channel, [&] { send(*channel); });
  }
  retried_.clear();
}

void ShmTransport::reclaim(Channel& channel) noexcept {
  const auto& reading = *reinterpret_cast<const Reading*>(channel.reading.data);
  const std::uint32_t done = reading.done.load(std::memory_order_acquire);
  while (!channel.on_the_way.empty() &&
         static_cast<std::uint32_t>(channel.on_the_way.begin()) != done) {
    const OnTheWay part = channel.on_the_way.pop();
    channel.bytes_on_the_way -= part.bytes;
    if (part.slot.data != nullptr) board_.give_back(part.slot);
  }
}

bool ShmTransport::has_room(Channel& channel, std::size_t bytes) noexcept {
  const auto fits = [&] {
    return channel.on_the_way.size() < notes_on_the_way_max &&
           (channel.bytes_on_the_way == 0 ||
            channel.bytes_on_the_way + bytes <= bytes_on_the_way_max);
  };
  if (bytes > 0 || !fits()) reclaim(channel);
  return fits();
}

bool ShmTransport::announce(Peer& peer, Channel& channel) noexcept {
  if (channel.is_announced) return true;
  Note* const note = peer.room();
  if (note == nullptr) return false;
  note->kind = Note::Kind::open;
  note->channel = channel.number;
  note->tag = channel.lane;
  note->offset = channel.reading.offset;
  static_cast<void>(peer.publish(*note));
  channel.is_announced = true;
  return true;
}

void ShmTransport::send(Channel& channel) {
  if (channel.is_blocked) return;
  if (channel.owes_farewell) return say_farewell(channel);
  while (!channel.sends.empty()) {
    Peer& peer = *peers_[channel.peer];
    const TransportOp& op = channel.sends.front();
    const std::uint64_t bytes = op.bytes();
    const bool is_inline = bytes <= inline_bytes_max;
    const bool has_slot = channel.filling.data != nullptr;
    const std::size_t in_slot = static_cast<std::size_t>(std::min<std::uint64_t>(
        has_slot ? channel.to_fill - channel.filled : bytes - channel.sent, slot_bytes_max));
    const std::size_t part = std::min(in_slot, part_bytes_max(bytes));
    const std::size_t beside = is_inline ? 0 : part;
    if (!has_room(channel, beside) || !announce(peer, channel)) return block(channel);
    Note* const note = peer.room();
    if (note == nullptr) return block(channel);
    channel.on_the_way.reserve(channel.on_the_way.size() + 1);
    if (!is_inline && !has_slot) {
      channel.filling = board_.take(in_slot);
      channel.filled = 0;
      channel.to_fill = in_slot;
    }
    common::OpMemory{op.first, op.rest}.copy_to(
        is_inline ? note->data.data() : channel.filling.data + channel.filled, channel.sent,
        channel.sent + part);
    channel.sent += part;
    note->kind = Note::Kind::part;
    note->is_last = channel.sent == bytes;
    note->is_inline = is_inline;
    note->is_in_one_slot = bytes <= slot_bytes_max;
    note->channel = channel.number;
    note->bytes = static_cast<std::uint32_t>(part);
    note->tag = op.tag;
    if (!is_inline) note->offset = channel.filling.offset + channel.filled;
    static_cast<void>(peer.publish(*note));
    mark(peer);
    has_moved_ = true;
    channel.filled += beside;
    const bool is_full = !is_inline && channel.filled == channel.to_fill;
    channel.on_the_way.push({.slot = is_full ? std::exchange(channel.filling, {}) : Board::Slot(),
                             .bytes = static_cast<std::uint32_t>(beside)});
    channel.bytes_on_the_way += beside;
    if (channel.sent < bytes) continue;
    channel.sent = 0;
    done_.push({.token = op.token, .bytes = bytes, .tag = op.tag});
    channel.sends.pop();
  }
}

void ShmTransport::say_farewell(Channel& channel) noexcept {
  Peer* const peer = peers_[channel.peer].get();
  if (peer == nullptr || !peer->lost.ok()) {
    channel.owes_farewell = false;
    return;
  }
  if (!announce(*peer, channel)) return block(channel);
  Note* const note = peer->room();
  if (note == nullptr) return block(channel);
  note->kind = Note::Kind::close;
  note->channel = channel.number;
  note->tag = channel.reason;
  channel.farewell_note = peer->publish(*note);
  channel.has_said_farewell = true;
  channel.owes_farewell = false;
  mark(*peer);
}

}  // namespace hocket::shm
