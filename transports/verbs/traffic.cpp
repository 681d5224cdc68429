#include "transports/verbs/traffic.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include <arpa/inet.h>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/log.hpp"
#include "transports/common/failures.hpp"

namespace hocket::verbs {
namespace {

constexpr std::uint32_t small_in_count = 512;
constexpr std::uint32_t small_out_at_once = 128;
constexpr std::uint32_t small_out_most = 1024;  // as peers that are stopped may hold some
constexpr std::uint32_t pieces_at_once = 4;
constexpr std::uint32_t pieces_most = 256;
/// On their way from one peer, so that one who is slow does not hold all slots.
constexpr std::uint32_t pieces_per_peer = 8;
constexpr std::uint64_t small_bytes_max = small_slot_bytes - header_bytes;
/// A round trip and what is under way take far less; who is dead is noticed otherwise.
constexpr Duration consent_time = std::chrono::seconds(1);

Status bad_message(const Peer& peer, std::string what) {
  return Status(StatusCode::protocol_error, fmt::format("rank {} sent {}", peer.rank, what))
      .with_hint("start all ranks with the same version");
}

/// The answer to a grant of which nothing comes.
Header drop_of(const Header& grant) {
  return {.lane = grant.lane, .kind = Kind::drop, .slot = grant.slot};
}

Header end_of_lanes(std::uint64_t first, std::uint64_t last, std::uint64_t reason) {
  return {.lane = first, .kind = Kind::close_lanes, .length = last, .tag = reason};
}

/// A small message is in a slot by now, from which only a processor could take it.
Status sent_from_host(const Peer& peer) {
  return Status(StatusCode::mismatch,
                fmt::format("rank {} sent a message from memory of its host to that of a device",
                            peer.rank))
      .with_peer(static_cast<int>(peer.rank));
}

}  // namespace

Traffic::Traffic(Rails& rails) : rails_(rails) {}
Traffic::~Traffic() = default;

Status Traffic::open() {
  std::vector<ibv_pd*> all;
  for (const auto& rail : rails_) all.push_back(rail->domain());
  const std::vector<ibv_pd*> first = {all.front()};
  small_in_ = std::make_unique<Slots>(
      SlotOptions{
          .slot_bytes = small_slot_bytes, .at_once = small_in_count, .most = small_in_count},
      first);
  small_out_ = std::make_unique<Slots>(
      SlotOptions{
          .slot_bytes = small_slot_bytes, .at_once = small_out_at_once, .most = small_out_most},
      first);
  SlotOptions pieces = {.slot_bytes = piece_bytes, .at_once = pieces_at_once, .most = pieces_most};
  pieces_out_ = std::make_unique<Slots>(pieces, all);
  pieces.is_written_remotely = true;
  pieces_in_ = std::make_unique<Slots>(pieces, all);
  regions_ = std::make_unique<Regions>(all);
  grants_ = std::make_unique<Grants>(*pieces_in_, pieces_most, *regions_);
  // Some of each now: without any, large messages would wait for ever.
  for (Slots* const slots :
       {small_in_.get(), small_out_.get(), pieces_in_.get(), pieces_out_.get()}) {
    if (Status status = slots->grow(); !status.ok()) return status;
  }
  while (const auto slot = small_in_->take()) free_receive(0, *slot);
  for (std::size_t rail = 1; rail < rails_.size(); ++rail) {
    for (std::uint32_t i = 0; i < rails_[rail]->options().receives; ++i) free_receive(rail, 0);
  }
  return {};
}

// --- what the user of the transport wants ---

Result<ChannelId> Traffic::open(Peer& peer, std::uint64_t lane) {
  const auto opened = channels_.open(peer, lane);
  if (!opened.ok()) return opened.status();
  Channel& channel = **opened;
  if (channel.has_failed()) return *channel.id;
  if (channels_.closed_lanes().contains(lane)) {
    fail(channel,
         Status(StatusCode::aborted, fmt::format("lane {} was closed", lane))
             .with_peer(static_cast<int>(peer.rank)),
         0);
  } else if (peer.is_lost()) {
    fail(channel, peer.failure, channel.arrivals.end());
  } else if (const auto reason = peer.closed_lanes.find(lane)) {
    fail(channel, closed_by_peer(peer.rank, *reason), channel.arrivals.end());
  }
  return *channel.id;
}

void Traffic::take(Channel& channel, const TransportOp& op) {
  const common::OpMemory memory = {.first = op.first, .rest = op.rest};
  const bool is_send = op.kind == TransportOp::Kind::send;
  const auto device = regions_->find_device(op.first, op.rest, !is_send);
  if (!device.ok()) {
    Status why = Status(device.status()).with_peer(static_cast<int>(channel.peer.rank));
    if (!channel.has_failed()) break_off(channel, why, 0);
    return reject(op, std::move(why));
  }
  ++outstanding_;
  if (*device != nullptr) Regions::pin(**device);
  if (is_send) {
    channel.sends.push({.memory = memory, .token = op.token, .tag = op.tag, .device = *device});
    note_ready(channel);
  } else {
    const bool may_lend = op.may_lend && *device == nullptr;
    channel.receives.push(
        {.memory = memory, .token = op.token, .may_lend = may_lend, .device = *device});
    match(channel);
  }
  if (channel.has_failed()) finish(channel);
}

void Traffic::reject(const TransportOp& op, Status why) {
  ++outstanding_;
  over_.push({.token = op.token, .status = std::move(why)});
}

void Traffic::give_back(const std::byte* lent) noexcept {
  if (small_in_->find(lent)) return free_small(lent);
  if (const auto slot = pieces_in_->find(lent)) pieces_in_->give(*slot);
}

void Traffic::close(Channel& channel, const Status& reason) {
  if (channel.has_failed()) return;
  break_off(channel, reason.ok() ? Status(StatusCode::aborted, "the channel was closed") : reason,
            0);
}

void Traffic::close_lanes(Peer& peer, std::uint64_t first, std::uint64_t last,
                          const Status& reason) {
  auto lane = peer.lanes.lower_bound(first);
  for (; lane != peer.lanes.end() && lane->first <= last; ++lane) {
    close(lane->second, reason);
    channels_.end(lane->second);
  }
  // Who is not linked yet is told by then.
  if (peer.is_linked) {
    push_control(peer, end_of_lanes(first, last, pack_reason(reason)));
  }
}

void Traffic::link(Peer& peer) {
  peer.is_linked = true;
  for (const auto& [first, range] : channels_.closed_lanes().ranges()) {
    push_control(peer, end_of_lanes(first, range.last, range.reason));
  }
  wake(peer);
}

/// Our end is over; so the other end must be told.
void Traffic::break_off(Channel& channel, Status why, std::uint64_t ends_at) {
  Header farewell = header_of(channel, Kind::close);
  farewell.number = static_cast<std::uint32_t>(channel.sends.begin());
  farewell.tag = pack_reason(why);
  push_control(channel.peer, farewell);
  fail(channel, std::move(why), ends_at);
}

// --- what comes ---

void Traffic::free_receive(std::size_t rail, std::uint64_t id) noexcept {
  const auto slot = static_cast<Slots::Index>(id);
  Status status = rail == 0 ? rails_[0]->post_receive(id, small_in_->memory(slot), small_slot_bytes,
                                                      small_in_->local_key(slot, 0))
                            : rails_[rail]->post_receive(id, nullptr, 0, 0);
  if (!status.ok()) log::line(log::Level::error, "{}", status.to_string());
}

void Traffic::free_small(const std::byte* data) noexcept {
  const auto slot = small_in_->find(data);
  if (!slot) return;
  --held_;
  free_receive(0, *slot);
}

Status Traffic::handle(Peer& peer, std::size_t rail, const ibv_wc& completion) {
  if (completion.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
    free_receive(rail, completion.wr_id);
    return take_piece(peer, ntohl(completion.imm_data), completion.byte_len);
  }
  if (rail != 0) return bad_message(peer, "a message over another rail than the first");
  bool is_kept = false;
  const std::byte* const data = small_in_->memory(static_cast<Slots::Index>(completion.wr_id));
  const auto header = Header::decode(data, completion.byte_len);
  Status status = header.ok() ? take_message(peer, *header, data + header_bytes, is_kept)
                              : bad_message(peer, std::string(header.status().what()));
  if (!is_kept) free_receive(rail, completion.wr_id);
  return status;
}

Status Traffic::take_message(Peer& peer, const Header& header, const std::byte* payload,
                             bool& is_kept) {
  if (header.kind == Kind::nothing) return {};
  if (header.kind == Kind::drop) return take_drop(peer, header.slot);
  if (header.kind == Kind::close_lanes) {
    return take_close_lanes(peer, header);
  }
  if (!peer.lanes.contains(header.lane)) {
    if (channels_.is_over(peer, header.lane)) {
      // It was said before its end had heard that it is over.
      if (header.kind == Kind::grant) push_control(peer, drop_of(header));
      return {};
    }
    if (peer.lanes.size() >= limits::verbs_lanes_max) {
      return bad_message(peer, "messages on more lanes than there may be");
    }
  }
  Channel& channel = Channels::of(peer, header.lane);
  const std::uint64_t consumed = widen(header.consumed, channel.started);
  if (consumed > channel.started) return bad_message(peer, "thanks for what it has not got");
  if (static_cast<std::int32_t>(header.consumed - channel.consumed) > 0) {
    channel.consumed = header.consumed;
    note_ready(channel);
  }
  switch (header.kind) {
    case Kind::data:
    case Kind::announce:
      return take_arrival(channel, header, payload, is_kept);
    case Kind::grant:
      return take_grant(channel, header);
    case Kind::close:
      take_close(channel, header);
      break;
    default:
      break;
  }
  return {};
}

Status Traffic::take_arrival(Channel& channel, const Header& header, const std::byte* payload,
                             bool& is_kept) {
  if (channel.has_failed()) return {};
  const std::uint64_t number = channel.arrivals.end();
  if (header.number != static_cast<std::uint32_t>(number)) {
    return bad_message(channel.peer, fmt::format("message {} of lane {} in place of {}",
                                                 header.number, channel.lane, number));
  }
  if (number - channel.matched >= Channel::window) {
    return bad_message(channel.peer, "more messages than it may");
  }
  const bool is_large = header.kind == Kind::announce;
  if (is_large && header.length == 0) return bad_message(channel.peer, "word of no message");
  if (!is_large) {
    is_kept = true;
    ++held_;
  }
  channel.arrivals.push({.bytes = header.length,
                         .tag = header.tag,
                         .is_large = is_large,
                         .data = is_large ? nullptr : payload});
  match(channel);
  if (is_large || channel.has_failed() || number < channel.matched) return {};
  if (held_ <= small_in_count / 4) return {};
  // So many wait for their receives that others might find no slot.
  Arrival& arrival = channel.arrivals[number];
  arrival.kept = std::make_unique<std::byte[]>(arrival.bytes + 1);
  std::copy_n(payload, arrival.bytes, arrival.kept.get());
  arrival.data = arrival.kept.get();
  free_small(payload);
  return {};
}

/// Pieces are asked for one behind the other, and of a channel that has failed still for a while.
Status Traffic::take_grant(Channel& channel, const Header& header) {
  Peer& peer = channel.peer;
  if (peer.jobs.size() >= pieces_per_peer)
    return bad_message(peer, "a wish for more pieces than it may have");
  if (!channel.has_failed()) {
    const std::uint64_t number = widen(header.number, channel.sends.begin());
    const bool is_there = number >= channel.sends.begin() && number < channel.started;
    SendOp* const op = is_there ? &channel.sends[number] : nullptr;
    if (op == nullptr || header.offset != op->asked || header.length == 0 ||
        header.length > std::min<std::uint64_t>(piece_bytes, op->memory.bytes() - op->asked) ||
        header.rail >= peer.pairs.size()) {
      return bad_message(peer, "a wish for a piece that there is not");
    }
    op->asked += header.length;
  }
  ++channel.jobs;
  peer.jobs.push({.channel = &channel, .grant = header});
  wake(peer);
  return {};
}

/// Of a channel that has failed, at both ends by now. When we ended it for a later message, the
/// other end has given up this one, too.
Status Traffic::take_drop(const Peer& peer, std::uint32_t number) {
  const Grant* const found = grants_->find(peer, number);
  if (found == nullptr || !found->channel->has_failed()) {
    return bad_message(peer, fmt::format("word that piece {} does not come", number));
  }
  const Grant grant = *found;
  Channel& channel = *grant.channel;
  grants_->end(number);
  if (!grant.is_void()) fail(channel, Status(channel.failure), grant.message);
  finish(channel);
  return {};
}

Status Traffic::take_piece(Peer& peer, std::uint32_t number, std::uint32_t bytes) {
  const Grant* const found = grants_->find(peer, number);
  if (found == nullptr || found->bytes != bytes) {
    return bad_message(
        peer, fmt::format("{} bytes as piece {}, which it was not asked for", bytes, number));
  }
  const Grant grant = *found;
  Channel& channel = *grant.channel;
  if (grant.is_void()) {
    grants_->end(number);
    finish(channel);
    return {};
  }
  Arrival& arrival = channel.arrivals[grant.message];
  ReceiveOp& op = channel.receives[grant.message];
  arrival.written += bytes;
  if (grant.region != nullptr) {
    grants_->end(number);
  } else if (op.may_lend && arrival.bytes == bytes) {
    grants_->lend(number);
    op.lent = pieces_in_->memory(number);
  } else {
    op.memory.copy_from(pieces_in_->memory(number), grant.offset, grant.offset + bytes);
    grants_->end(number);
  }
  if (!arrival.is_whole()) return {};
  op.is_done = true;
  finish(channel);
  match(channel);
  return {};
}

void Traffic::take_close(Channel& channel, const Header& header) {
  if (channel.has_failed()) return;
  const std::uint64_t end = widen(header.number, channel.arrivals.end());
  fail(channel, closed_by_peer(channel.peer.rank, header.tag),
       std::min(end, channel.arrivals.end()));
}

/// Of a lane on which the peer had anything, it has told the end before.
Status Traffic::take_close_lanes(Peer& peer, const Header& header) {
  const std::uint64_t first = header.lane;
  const std::uint64_t last = header.length;
  if (last < first) return bad_message(peer, "the end of lanes that there are not");
  peer.closed_lanes.add(first, last, header.tag);
  auto lane = peer.lanes.lower_bound(first);
  for (; lane != peer.lanes.end() && lane->first <= last; ++lane) {
    Channel& channel = lane->second;
    if (channel.has_failed()) continue;
    fail(channel, closed_by_peer(peer.rank, header.tag), channel.first_incomplete());
  }
  return {};
}

// --- messages and receives ---

void Traffic::match(Channel& channel) {
  const std::uint64_t before = channel.matched;
  std::uint64_t end = std::min(channel.receives.end(), channel.arrivals.end());
  if (channel.has_failed()) end = std::min(end, channel.ends_at);
  while (channel.matched < end && meet(channel, channel.matched)) ++channel.matched;
  if (channel.matched == before) return;
  tell_consumed(channel);
  if (!channel.is_hungry && channel.granting < channel.matched) {
    channel.is_hungry = true;
    hungry_.push(&channel);
  }
  finish(channel);
}

bool Traffic::meet(Channel& channel, std::uint64_t number) {
  Arrival& arrival = channel.arrivals[number];
  ReceiveOp& op = channel.receives[number];
  op.tag = arrival.tag;
  if (arrival.bytes > op.memory.bytes()) {
    // First what is before it comes in full, for which the other end must go on.
    if (channel.first_incomplete() < number) return false;
    break_off(channel, common::too_long(channel.peer.rank, arrival.bytes, op.memory.bytes()),
              number);
    return false;
  }
  op.bytes = arrival.bytes;
  if (arrival.is_large) return true;
  if (op.device != nullptr && arrival.bytes > 0) {
    if (channel.first_incomplete() < number) return false;
    break_off(channel, sent_from_host(channel.peer), number);
    return false;
  }
  if (op.may_lend && arrival.kept == nullptr && held_ <= small_in_count / 2) {
    op.lent = std::exchange(arrival.data, nullptr);
  } else {
    op.memory.copy_from(arrival.data, 0, arrival.bytes);
    end_arrival(arrival);
  }
  op.is_done = true;
  return true;
}

/// The memory in which it waited is free.
void Traffic::end_arrival(Arrival& arrival) noexcept {
  if (arrival.data != nullptr && arrival.kept == nullptr) free_small(arrival.data);
  arrival.data = nullptr;
  arrival.kept.reset();
}

void Traffic::tell_consumed(Channel& channel) {
  if (channel.matched - channel.matched_told < Channel::window / 2) return;
  if (channel.has_failed()) return;
  push_control(channel.peer, header_of(channel, Kind::credit));
}

/// Asks for the pieces of messages that have met their receives. True when there is no more to ask
/// for.
bool Traffic::ask_next(Channel& channel) {
  Peer& peer = channel.peer;
  for (;;) {
    std::uint64_t end = channel.matched;
    if (channel.has_failed()) end = std::min(end, channel.ends_at);
    channel.granting = std::max(channel.granting, channel.arrivals.begin());
    if (channel.granting >= end || peer.is_lost()) return true;
    Arrival& arrival = channel.arrivals[channel.granting];
    if (!arrival.is_large || arrival.granted == arrival.bytes) {
      ++channel.granting;
      continue;
    }
    if (peer.granted >= pieces_per_peer) return false;
    const ReceiveOp& op = channel.receives[channel.granting];
    const auto room = grants_->room_for(op, arrival);
    if (!room) return false;
    const std::size_t rail = peer.next_rail++ % peer.pairs.size();
    grants_->give(*room, channel, channel.granting, arrival.granted);
    Header grant = header_of(channel, Kind::grant);
    grant.number = static_cast<std::uint32_t>(channel.granting);
    grant.rail = static_cast<std::uint16_t>(rail);
    grant.slot = room->grant;
    grant.length = room->memory.bytes;
    grant.offset = arrival.granted;
    grant.address = reinterpret_cast<std::uintptr_t>(room->memory.data);
    if (room->region == nullptr) {
      grant.key = pieces_in_->remote_key(room->grant, rail);
    } else {
      grant.key = room->region->keys[rail]->rkey;
    }
    arrival.granted += room->memory.bytes;
    push_control(peer, grant);
  }
}

// --- what goes ---

Header Traffic::header_of(Channel& channel, Kind kind) noexcept {
  channel.matched_told = channel.matched;
  return {
      .lane = channel.lane, .consumed = static_cast<std::uint32_t>(channel.matched), .kind = kind};
}

void Traffic::note_ready(Channel& channel) {
  if (channel.is_ready || !channel.can_start()) return;
  channel.is_ready = true;
  channel.peer.ready.push(&channel);
  wake(channel.peer);
}

void Traffic::push_control(Peer& peer, const Header& header) {
  if (peer.is_lost()) return;
  peer.controls.push(header);
  wake(peer);
}

void Traffic::wake(Peer& peer) {
  if (peer.is_busy || !peer.is_linked || !peer.has_work()) return;
  peer.is_busy = true;
  busy_.push_back(&peer);
}

void Traffic::doom(Peer& peer, Status why) {
  if (peer.is_doomed || peer.is_lost()) return;
  peer.is_doomed = true;
  doomed_.emplace_back(&peer, std::move(why));
}

void Traffic::serve() {
  for (std::uint64_t left = hungry_.size(); left > 0; --left) {
    Channel& channel = *hungry_.pop();
    channel.is_hungry = !ask_next(channel);
    if (channel.is_hungry) hungry_.push(&channel);
  }
  std::erase_if(busy_, [this](Peer* peer) {
    peer->is_busy = !serve(*peer);
    return !peer->is_busy;
  });
  channels_.bury();
}

/// True when nothing waits for it any more.
bool Traffic::serve(Peer& peer) {
  if (peer.is_lost()) return true;
  if (peer.is_doomed) return false;
  const bool has_no_jobs = serve_jobs(peer);
  const bool has_no_controls = serve_controls(peer);
  return serve_channels(peer) && has_no_jobs && has_no_controls;
}

bool Traffic::serve_jobs(Peer& peer) {
  while (!peer.jobs.empty()) {
    Channel& channel = *peer.jobs.front().channel;
    if (write(peer, peer.jobs.front()) != Sent::yes) return false;
    peer.jobs.pop();
    --channel.jobs;
  }
  return true;
}

bool Traffic::serve_controls(Peer& peer) {
  while (!peer.controls.empty()) {
    if (send(peer, peer.controls.front()) != Sent::yes) return false;
    peer.controls.pop();
  }
  return true;
}

bool Traffic::serve_channels(Peer& peer) {
  while (!peer.ready.empty()) {
    Channel& channel = *peer.ready.front();
    Sent sent = Sent::yes;
    while (sent == Sent::yes && channel.can_start()) sent = start(channel);
    finish(channel);
    if (sent != Sent::yes) return false;
    channel.is_ready = false;
    peer.ready.pop();
  }
  return true;
}

Traffic::Sent Traffic::start(Channel& channel) {
  SendOp& op = channel.sends[channel.started];
  const std::uint64_t bytes = op.memory.bytes();
  const bool is_small = bytes == 0 || (bytes <= small_bytes_max && op.device == nullptr);
  const std::uint64_t told = channel.matched_told;
  Header header = header_of(channel, is_small ? Kind::data : Kind::announce);
  header.number = static_cast<std::uint32_t>(channel.started);
  header.length = bytes;
  header.tag = op.tag;
  const Sent sent = send(channel.peer, header, is_small ? op.memory : common::OpMemory());
  if (sent != Sent::yes) {
    channel.matched_told = told;
    return sent;
  }
  op.is_done = is_small;
  ++channel.started;
  return sent;
}

Traffic::Sent Traffic::write(Peer& peer, const Job& job) {
  Channel& channel = *job.channel;
  const Header& grant = job.grant;
  const std::uint64_t number = widen(grant.number, channel.sends.begin());
  if (channel.has_failed() || number < channel.sends.begin()) {
    push_control(peer, drop_of(grant));
    return Sent::yes;
  }
  if (!peer.pairs[grant.rail]->has_room()) return Sent::no_room;
  SendOp& op = channel.sends[number];
  auto source = source_of(op, grant);
  if (!source) return Sent::no_room;
  source->hold.channel = &channel;
  source->hold.number = number;
  ibv_send_wr request = {};
  request.sg_list = source->parts.data();
  request.num_sge = source->count;
  request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
  request.imm_data = htonl(grant.slot);
  request.wr.rdma.remote_addr = grant.address;
  request.wr.rdma.rkey = grant.key;
  const Sent sent = post(peer, grant.rail, request, source->hold);
  if (sent != Sent::yes) return sent;
  op.written += grant.length;
  op.is_done = op.written == op.memory.bytes();
  finish(channel);
  return sent;
}

/// In which all of a piece is; null when it must be copied.
Region* Traffic::region_of_piece(const SendOp& op, const Header& grant) const noexcept {
  if (op.device != nullptr) return op.device;
  const MemoryPart memory = op.memory.stretch(grant.offset, grant.length);
  if (memory.bytes < grant.length) return nullptr;
  return regions_->find(memory.data, memory.bytes, false);
}

/// Its own memory where that is registered, else a copy in a slot. None when there is no slot.
std::optional<Traffic::Source> Traffic::source_of(SendOp& op, const Header& grant) {
  Source source;
  const auto add = [&source](const std::byte* data, std::uint64_t bytes, std::uint32_t key) {
    source.parts.at(static_cast<std::size_t>(source.count++)) = {
        .addr = reinterpret_cast<std::uintptr_t>(data),
        .length = static_cast<std::uint32_t>(bytes),
        .lkey = key};
  };
  const std::uint64_t end = grant.offset + grant.length;
  if (Region* const region = region_of_piece(op, grant)) {
    op.memory.visit(grant.offset, end, [&](const std::byte* data, std::uint64_t bytes) {
      add(data, bytes, region->keys[grant.rail]->lkey);
    });
    Regions::pin(*region);
    ++op.pins;
    source.hold.region = region;
    return source;
  }
  const auto slot = pieces_out_->take();
  if (!slot) return std::nullopt;
  op.memory.copy_to(pieces_out_->memory(*slot), grant.offset, end);
  add(pieces_out_->memory(*slot), grant.length, pieces_out_->local_key(*slot, grant.rail));
  source.hold.slots = pieces_out_.get();
  source.hold.slot = *slot;
  return source;
}

Traffic::Sent Traffic::send(Peer& peer, const Header& header, const common::OpMemory& payload,
                            bool is_last) {
  if (!peer.pairs.front()->has_room()) return Sent::no_room;
  std::byte encoded[header_bytes_max];
  header.encode(encoded);
  const std::size_t head = header.bytes();
  const auto total = static_cast<std::uint32_t>(head + payload.bytes());
  ibv_sge parts[3];
  ibv_send_wr request = {};
  request.sg_list = parts;
  request.opcode = IBV_WR_SEND;
  const auto add = [&](const std::byte* data, std::uint64_t bytes, std::uint32_t key) {
    parts[request.num_sge++] = {.addr = reinterpret_cast<std::uintptr_t>(data),
                                .length = static_cast<std::uint32_t>(bytes),
                                .lkey = key};
  };
  if (total <= peer.pairs.front()->inline_bytes_max()) {
    add(encoded, head, 0);
    payload.visit(0, payload.bytes(),
                  [&](const std::byte* data, std::uint64_t bytes) { add(data, bytes, 0); });
    return post(peer, 0, request, {}, is_last);
  }
  const auto slot = small_out_->take();
  if (!slot) return Sent::no_room;
  std::byte* const memory = small_out_->memory(*slot);
  std::copy_n(encoded, head, memory);
  payload.copy_to(memory + head, 0, payload.bytes());
  add(memory, total, small_out_->local_key(*slot, 0));
  return post(peer, 0, request, {.slots = small_out_.get(), .slot = *slot}, is_last);
}

Traffic::Sent Traffic::post(Peer& peer, std::size_t rail, ibv_send_wr& request, Hold hold,
                            bool is_last) {
  Status status = peer.pairs[rail]->post(request, hold, is_last);
  if (status.ok()) return Sent::yes;
  release(hold);
  doom(peer, std::move(status).with_peer(static_cast<int>(peer.rank)));
  return Sent::broken;
}

bool Traffic::say_last(Peer& peer) {
  return send(peer, {.kind = Kind::nothing}, {}, true) != Sent::no_room;
}

// --- ends ---

void Traffic::release(const Hold& hold) {
  if (hold.slots != nullptr) return hold.slots->give(hold.slot);
  if (hold.region == nullptr) return;
  regions_->unpin(*hold.region);
  --hold.channel->sends[hold.number].pins;
  finish(*hold.channel);
}

void Traffic::fail(Channel& channel, Status why, std::uint64_t ends_at) {
  if (why.peer() < 0) why = std::move(why).with_peer(static_cast<int>(channel.peer.rank));
  channel.failure = std::move(why);
  channel.ends_at = ends_at;
  const std::uint64_t first = std::max(ends_at, channel.arrivals.begin());
  for (std::uint64_t i = first; i < channel.arrivals.end(); ++i) end_arrival(channel.arrivals[i]);
  finish(channel);
  if (channel.is_withheld || !channel.withholds_ops()) return;
  channel.is_withheld = true;
  withheld_.push_back({&channel, Deadline::after(monotonic_clock(), consent_time)});
}

void Traffic::expire(Instant now) {
  std::erase_if(withheld_, [&](const Withheld& each) {
    each.channel->is_withheld = each.channel->withholds_ops();
    if (each.channel->is_withheld && each.until.passed(now)) {
      Peer& peer = each.channel->peer;
      doom(peer, Status(StatusCode::peer_lost,
                        fmt::format("rank {} is lost: it does not answer what was asked of it "
                                    "before the channel failed, and so could still write to our "
                                    "memory",
                                    peer.rank))
                     .with_peer(static_cast<int>(peer.rank))
                     .with_hint("is its process stopped?"));
    }
    return !each.channel->is_withheld;
  });
}

Deadline Traffic::next() const noexcept {
  Deadline next;
  for (const Withheld& each : withheld_) next = next.or_sooner(each.until);
  return next;
}

void Traffic::lose(Peer& peer, const Status& why) {
  peer.failure = why;
  peer.is_linked = false;
  grants_->end_all_of(peer);
  peer.controls = {};
  peer.jobs = {};
  while (!peer.ready.empty()) peer.ready.pop()->is_ready = false;
  for (auto& [lane, channel] : peer.lanes) {
    channel.jobs = 0;
    const std::uint64_t end = channel.first_incomplete();
    if (!channel.has_failed()) {
      fail(channel, why, end);
    } else {
      fail(channel, Status(channel.failure), std::min(end, channel.ends_at));
    }
  }
}

void Traffic::finish(Channel& channel) {
  auto& sends = channel.sends;
  while (!sends.empty() && sends.front().pins == 0 &&
         (sends.front().is_done || channel.has_failed())) {
    const SendOp op = sends.pop();
    let_go(op.device);
    over_.push({.token = op.token,
                .bytes = op.is_done ? op.memory.bytes() : 0,
                .tag = op.tag,
                .status = op.is_done ? Status() : channel.failure});
  }
  channel.started = std::max(channel.started, sends.begin());
  auto& receives = channel.receives;
  while (!receives.empty()) {
    const bool is_failed = channel.has_failed() && receives.begin() >= channel.ends_at;
    if (receives.front().pins > 0 || (!receives.front().is_done && !is_failed)) return;
    const bool has_arrival =
        !channel.arrivals.empty() && channel.arrivals.begin() == receives.begin();
    if (has_arrival) channel.arrivals.pop();
    const ReceiveOp op = receives.pop();
    let_go(op.device);
    over_.push({.token = op.token,
                .bytes = op.is_done ? op.bytes : 0,
                .tag = op.tag,
                .lent = op.lent,
                .status = op.is_done ? Status() : channel.failure});
  }
}

void Traffic::let_go(Region* device) noexcept {
  if (device != nullptr) regions_->unpin(*device);
}

std::size_t Traffic::emit(std::span<TransportCompletion> completions) noexcept {
  std::size_t count = 0;
  while (!over_.empty() && count < completions.size()) completions[count++] = over_.pop();
  outstanding_ -= count;
  return count;
}

}  // namespace hocket::verbs
