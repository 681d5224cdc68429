#include "engine/mailbox.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "engine/timed_recorder.hpp"

namespace hocket::engine {
namespace {

constexpr std::uint64_t letter_bytes = 24;
/// Messages up to so many bytes go whole in a letter.
constexpr std::uint64_t small_bytes_max = 4096;
constexpr std::uint64_t buffer_bytes = letter_bytes + small_bytes_max;
/// And up to so many they are pushed: to wait for a clear would take longer than to copy them once.
constexpr std::uint64_t pushed_bytes_max = 256 << 10;
/// Of a sender: how far it may be ahead of its receiver.
constexpr std::uint32_t credits_max = 256;
/// Receives of letters that are posted for each peer.
constexpr int letters_expected = 4;

/// What a message takes of its sender's credit.
std::uint32_t units_of(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>((std::max<std::uint64_t>(bytes, 1) - 1) / small_bytes_max + 1);
}

Status no_credit(std::uint32_t peer) {
  return Status(
             StatusCode::protocol_error,
             fmt::format("rank {} sent more than it may, or gave more credit than there is", peer))
      .with_peer(static_cast<int>(peer));
}

Status too_late(const Parcel& parcel) {
  if (parcel.peer == any_rank) {
    return Status(StatusCode::timeout, "no rank has sent a message in time");
  }
  return Status(StatusCode::timeout,
                fmt::format("rank {} has not {} in time", parcel.peer,
                            parcel.sends ? "taken a message" : "sent a message"))
      .with_peer(static_cast<int>(parcel.peer));
}

/// A copy of nothing may have no memory.
void copy_bytes(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

}  // namespace

Mailbox::Mailbox(std::uint32_t rank, std::uint32_t size)
    : rank_(rank), recorder_(&TimedRecorder::off()), peers_(size), buffers_(buffer_bytes) {}

const Parcel* Mailbox::any_under_way() const noexcept {
  const auto found = std::ranges::find_if(
      items_, [](const Item& each) { return each.is_used && each.parcel.work != nullptr; });
  return found == items_.end() ? nullptr : &found->parcel;
}

void Mailbox::open(std::uint32_t peer, ChannelId letters, ChannelId payloads, OpList& outgoing) {
  peers_[peer] = {
      .is_open = true, .letters = letters, .payloads = payloads, .credits = credits_max};
  for (int i = 0; i < letters_expected; ++i) expect_letter(peer, outgoing);
}

Status Mailbox::start(const Parcel& parcel, OpList& outgoing) {
  parcel.work->begin();
  if (!failure_.ok()) {
    recorder_->end(recorder_->begin(parcel, communicator_), false);
    parcel.work->finish(failure_);
    return {};
  }
  std::uint32_t item = none;
  try {
    item = add_item(parcel);
  } catch (const std::bad_alloc&) {
    parcel.work->finish(Status::out_of_memory());
    return Status::out_of_memory();
  }
  items_[item].record = recorder_->begin(parcel, communicator_);
  return parcel.sends ? send(item, outgoing) : receive(item, outgoing);
}

Status Mailbox::send(std::uint32_t item, OpList& outgoing) {
  const Parcel& parcel = items_[item].parcel;
  Letter letter = {.type = parcel.type, .tag = parcel.tag, .bytes = parcel.bytes, .number = item};
  if (parcel.peer == rank_) {
    letter.kind = LetterKind::offer;
    items_[item].is_offered = true;
    return arrive({.peer = rank_, .letter = letter}, outgoing);
  }
  Peer& peer = peers_[parcel.peer];
  if (!peer.lost.ok()) return peer.lost;
  const bool is_small = parcel.bytes <= small_bytes_max;
  const bool may_push = parcel.bytes <= pushed_bytes_max && peer.offers == 0;
  if ((is_small || may_push) && peer.credits >= units_of(parcel.bytes)) {
    peer.credits -= units_of(parcel.bytes);
    if (!is_small) letter.kind = LetterKind::push;
    post_letter(parcel.peer, letter, item, outgoing);
    if (!is_small) post_payload(parcel.peer, item, parcel.bytes, outgoing);
    return {};
  }
  letter.kind = LetterKind::offer;
  items_[item].is_offered = true;
  ++peer.offers;
  post_letter(parcel.peer, letter, none, outgoing);
  return {};
}

Status Mailbox::receive(std::uint32_t item, OpList& outgoing) {
  const auto found = std::ranges::find_if(
      unexpected_, [&](const Arrived& arrived) { return fits(items_[item].parcel, arrived); });
  if (found == unexpected_.end()) {
    expected_.push_back(item);
    return hopeless(items_[item].parcel);
  }
  const Arrived arrived = *found;
  unexpected_.erase(found);
  return accept(item, arrived, outgoing);
}

bool Mailbox::fits(const Parcel& expected, const Arrived& arrived) noexcept {
  return (expected.peer == any_rank || expected.peer == arrived.peer) &&
         (expected.tag == any_tag || expected.tag == arrived.letter.tag);
}

Status Mailbox::arrive(const Arrived& arrived, OpList& outgoing) {
  const auto found = std::ranges::find_if(
      expected_, [&](std::uint32_t item) { return fits(items_[item].parcel, arrived); });
  if (found == expected_.end()) {
    unexpected_.push_back(arrived);
    if (arrived.letter.kind == LetterKind::push) keep_push(unexpected_.back(), outgoing);
    return {};
  }
  const std::uint32_t item = *found;
  expected_.erase(found);
  return accept(item, arrived, outgoing);
}

Status Mailbox::accept(std::uint32_t item, const Arrived& arrived, OpList& outgoing) {
  const Parcel& parcel = items_[item].parcel;
  const Letter& letter = arrived.letter;
  *parcel.received = {.peer = arrived.peer, .tag = letter.tag, .bytes = letter.bytes};
  recorder_->note_wait(items_[item].record, 0, arrived.peer);
  if (letter.type != parcel.type) {
    return Status(
               StatusCode::mismatch,
               fmt::format("rank {} sent a message of {} with tag {}, and rank {} receives {}",
                           arrived.peer, name(letter.type), letter.tag, rank_, name(parcel.type)))
        .with_peer(static_cast<int>(arrived.peer))
        .with_hint("receive what is sent, as the type that it is sent as");
  }
  if (letter.bytes > parcel.bytes) {
    return Status(StatusCode::mismatch,
                  fmt::format("a message of {} bytes with tag {} came from rank {}, where there is "
                              "room for {}",
                              letter.bytes, letter.tag, arrived.peer, parcel.bytes))
        .with_peer(static_cast<int>(arrived.peer))
        .with_hint("receive into as much memory as the sender sends");
  }
  if (arrived.op != none) {
    ops_[arrived.op].item = item;
    ++items_[item].posted;
  } else if (arrived.buffer != none) {
    hand_over(item, arrived.peer, arrived.buffer, outgoing);
  } else if (letter.kind == LetterKind::push) {
    if (!peers_[arrived.peer].lost.ok()) return peers_[arrived.peer].lost;
    post_payload(arrived.peer, item, letter.bytes, outgoing);
    give_credit(arrived.peer, letter.bytes, outgoing);
  } else if (arrived.peer == rank_) {
    const auto sent = static_cast<std::uint32_t>(letter.number);
    copy_bytes(parcel.memory, items_[sent].parcel.memory, letter.bytes);
    finish(item, {});
    finish(sent, {});
  } else {
    post_payload(arrived.peer, item, letter.bytes, outgoing);
    post_letter(arrived.peer, {.kind = LetterKind::clear, .number = letter.number}, none, outgoing);
  }
  return {};
}

/// A message from a buffer.
void Mailbox::hand_over(std::uint32_t item, std::uint32_t peer, std::uint32_t buffer,
                        OpList& outgoing) {
  const std::uint64_t bytes = items_[item].parcel.received->bytes;
  copy_bytes(items_[item].parcel.memory, buffers_.memory(buffer) + letter_bytes, bytes);
  buffers_.give_back(buffer);
  finish(item, {});
  give_credit(peer, bytes, outgoing);
}

void Mailbox::give_credit(std::uint32_t peer, std::uint64_t bytes, OpList& outgoing) {
  Peer& sender = peers_[peer];
  sender.owed += units_of(bytes);
  if (sender.owed < credits_max / 2 || !sender.lost.ok()) return;
  sender.kept -= sender.owed;
  post_letter(peer, {.kind = LetterKind::credit, .number = std::exchange(sender.owed, 0U)}, none,
              outgoing);
}

Status Mailbox::complete(std::uint32_t number, const TransportCompletion& completion,
                         OpList& outgoing) {
  const Op op = ops_[number];
  free_ops_.push_back(number);
  const bool is_last = op.item != none && --items_[op.item].posted == 0;
  const bool comes = op.kind == OpKind::letter_in || op.kind == OpKind::push_in;
  if (op.buffer != none && (!comes || !failure_.ok())) buffers_.give_back(op.buffer);
  if (!failure_.ok()) {
    if (is_last) finish(op.item, failure_);
    return {};
  }
  if (!completion.status.ok()) {
    if (op.kind == OpKind::credit_out) return {};  // the receives of letters tell
    if (comes) buffers_.give_back(op.buffer);
    if (!comes || op.item != none) {
      return completion.status;
    }
    // That a push was lost is known to the receive that gets it: those behind it are not for that.
    if (op.kind == OpKind::push_in) kept_by(number)->op = kept_by(number)->buffer = none;
    return lose(op.peer, completion.status);
  }
  if (op.kind == OpKind::letter_in) {
    expect_letter(op.peer, outgoing);
    return take_letter(op.peer, op.buffer, completion.bytes, outgoing);
  }
  if (op.kind == OpKind::push_in || op.kind == OpKind::payload_in) {
    const std::uint64_t expected =
        op.item == none ? kept_by(number)->letter.bytes : items_[op.item].parcel.received->bytes;
    if (completion.bytes != expected) {
      return Status(StatusCode::protocol_error,
                    fmt::format("rank {} sent {} bytes of a message of {}", op.peer,
                                completion.bytes, expected))
          .with_peer(static_cast<int>(op.peer));
    }
  }
  if (op.item == none) {
    if (op.kind == OpKind::push_in) kept_by(number)->op = none;
  } else if (op.kind == OpKind::push_in) {
    hand_over(op.item, op.peer, op.buffer, outgoing);
  } else if (is_last) {
    finish(op.item, {});
  }
  return {};
}

Status Mailbox::take_letter(std::uint32_t peer, std::uint32_t buffer, std::uint64_t bytes,
                            OpList& outgoing) {
  const Letter letter = bytes >= letter_bytes ? read(buffers_.memory(buffer)) : Letter();
  const bool is_message = letter.kind == LetterKind::message;
  const bool is_too_long = letter.kind == LetterKind::push && letter.bytes > pushed_bytes_max;
  if (bytes != letter_bytes + (is_message ? letter.bytes : 0) || is_too_long ||
      letter.kind > LetterKind::push) {
    return Status(StatusCode::protocol_error,
                  fmt::format("what came from rank {} in {} bytes is no letter", peer, bytes))
        .with_peer(static_cast<int>(peer));
  }
  if (is_message || letter.kind == LetterKind::push) {
    peers_[peer].kept += units_of(letter.bytes);
    if (peers_[peer].kept > credits_max) return no_credit(peer);
  }
  if (is_message) return arrive({.peer = peer, .letter = letter, .buffer = buffer}, outgoing);
  buffers_.give_back(buffer);
  if (letter.kind == LetterKind::clear) return take_clear(peer, letter, outgoing);
  if (letter.kind == LetterKind::credit) return take_credit(peer, letter);
  return arrive({.peer = peer, .letter = letter}, outgoing);
}

Status Mailbox::take_credit(std::uint32_t peer, const Letter& letter) {
  std::uint32_t& credits = peers_[peer].credits;
  if (letter.number > credits_max - credits) return no_credit(peer);
  credits += static_cast<std::uint32_t>(letter.number);
  return {};
}

Status Mailbox::take_clear(std::uint32_t peer, const Letter& letter, OpList& outgoing) {
  const std::uint64_t item = letter.number;
  const bool is_ours = item < items_.size() && items_[item].is_used && items_[item].is_offered &&
                       items_[item].parcel.peer == peer;
  if (!is_ours) {
    return Status(StatusCode::protocol_error,
                  fmt::format("rank {} takes what it was not offered", peer))
        .with_peer(static_cast<int>(peer));
  }
  items_[item].is_offered = false;
  --peers_[peer].offers;
  post_payload(peer, static_cast<std::uint32_t>(item), items_[item].parcel.bytes, outgoing);
  return {};
}

/// A rank that is gone is a failure for those that wait for it; others go on without it.
Status Mailbox::lose(std::uint32_t peer, const Status& why) {
  if (!peers_[peer].lost.ok()) return {};
  peers_[peer].lost = why;
  for (const Item& item : items_) {
    // What the transport has fails or succeeds by itself.
    if (!item.is_used || item.posted > 0) continue;
    if (item.parcel.peer == peer) return peers_[peer].lost;
    if (item.parcel.peer != any_rank) continue;
    if (Status status = hopeless(item.parcel); !status.ok()) return status;
  }
  return {};
}

/// Of a receive that nothing has come for.
Status Mailbox::hopeless(const Parcel& parcel) const {
  if (parcel.peer == rank_) return {};
  if (parcel.peer != any_rank) return peers_[parcel.peer].lost;
  Status last;
  for (std::uint32_t peer = 0; peer < peers_.size(); ++peer) {
    if (peer == rank_) continue;
    if (peers_[peer].lost.ok()) return {};
    last = peers_[peer].lost;
  }
  return last;
}

Status Mailbox::expire(Instant now) {
  for (std::uint32_t item = 0; item < items_.size(); ++item) {
    const Parcel& parcel = items_[item].parcel;
    if (!items_[item].is_used || !parcel.deadline.passed(now)) continue;
    if (!parcel.fails_alone) return too_late(parcel);
    give_up(item);
  }
  return {};
}

/// A receive at its deadline. One whose message has begun to arrive gets it.
void Mailbox::give_up(std::uint32_t item) {
  const auto found = std::ranges::find(expected_, item);
  if (found == expected_.end()) {
    items_[item].parcel.deadline = {};
    return;
  }
  const Status why = too_late(items_[item].parcel);
  expected_.erase(found);
  finish(item, why);
}

Deadline Mailbox::deadline() const noexcept {
  Deadline first;
  if (!failure_.ok()) return first;
  for (const Item& item : items_) {
    if (item.is_used) first = first.or_sooner(item.parcel.deadline);
  }
  return first;
}

Status Mailbox::loss() const {
  const auto lost = std::ranges::find_if(peers_, [](const Peer& peer) { return !peer.lost.ok(); });
  return lost == peers_.end() ? Status() : lost->lost;
}

void Mailbox::fail(const Status& why) noexcept {
  if (!failure_.ok()) return;
  failure_ = why;
  expected_.clear();
  for (const Arrived& each : unexpected_) {
    if (each.buffer != none && each.op == none) buffers_.give_back(each.buffer);
  }
  unexpected_.clear();
  for (std::uint32_t item = 0; item < items_.size(); ++item) {
    if (items_[item].is_used && items_[item].posted == 0) finish(item, why);
  }
}

void Mailbox::post_letter(std::uint32_t peer, const Letter& letter, std::uint32_t item,
                          OpList& outgoing) {
  outgoing.reserve_one();
  const std::uint32_t buffer = buffers_.take(buffer_bytes);
  write(letter, buffers_.memory(buffer));
  const bool is_credit = letter.kind == LetterKind::credit;
  const std::uint32_t number = add_op({.kind = is_credit ? OpKind::credit_out : OpKind::letter_out,
                                       .peer = peer,
                                       .buffer = buffer,
                                       .item = item});
  TransportOp& op = outgoing.add();
  op.channel = peers_[peer].letters;
  op.first = {buffers_.memory(buffer), letter_bytes};
  if (item != none) ++items_[item].posted;
  if (letter.kind == LetterKind::message) {
    op.rest = {items_[item].parcel.memory, items_[item].parcel.bytes};
  }
  op.token = token_base_ | number;
}

void Mailbox::post_payload(std::uint32_t peer, std::uint32_t item, std::uint64_t bytes,
                           OpList& outgoing) {
  const bool sends = items_[item].parcel.sends;
  outgoing.reserve_one();
  const std::uint32_t number = add_op(
      {.kind = sends ? OpKind::payload_out : OpKind::payload_in, .peer = peer, .item = item});
  ++items_[item].posted;
  TransportOp& op = outgoing.add();
  op.kind = sends ? TransportOp::Kind::send : TransportOp::Kind::recv;
  op.channel = peers_[peer].payloads;
  op.first = {items_[item].parcel.memory, bytes};
  op.token = token_base_ | number;
}

void Mailbox::expect_letter(std::uint32_t peer, OpList& outgoing) {
  outgoing.reserve_one();
  const std::uint32_t buffer = buffers_.take(buffer_bytes);
  const std::uint32_t number = add_op({.kind = OpKind::letter_in, .peer = peer, .buffer = buffer});
  TransportOp& op = outgoing.add();
  op.kind = TransportOp::Kind::recv;
  op.channel = peers_[peer].letters;
  op.first = {buffers_.memory(buffer), buffer_bytes};
  op.token = token_base_ | number;
}

/// Receives what is pushed, and not expected yet.
void Mailbox::keep_push(Arrived& arrived, OpList& outgoing) {
  const std::uint64_t bytes = arrived.letter.bytes;
  outgoing.reserve_one();
  arrived.buffer = buffers_.take(letter_bytes + bytes);
  arrived.op = add_op({.kind = OpKind::push_in, .peer = arrived.peer, .buffer = arrived.buffer});
  TransportOp& op = outgoing.add();
  op.kind = TransportOp::Kind::recv;
  op.channel = peers_[arrived.peer].payloads;
  op.first = {buffers_.memory(arrived.buffer) + letter_bytes, bytes};
  op.token = token_base_ | arrived.op;
}

std::vector<Mailbox::Arrived>::iterator Mailbox::kept_by(std::uint32_t op) {
  return std::ranges::find(unexpected_, op, &Arrived::op);
}

std::uint32_t Mailbox::add_op(const Op& op) {
  if (free_ops_.empty()) {
    free_ops_.reserve(ops_.size() + 1);  // so that to free one needs no memory
    ops_.push_back(op);
    return static_cast<std::uint32_t>(ops_.size() - 1);
  }
  const std::uint32_t number = free_ops_.back();
  free_ops_.pop_back();
  ops_[number] = op;
  return number;
}

std::uint32_t Mailbox::add_item(const Parcel& parcel) {
  if (free_items_.empty()) {
    free_items_.reserve(items_.size() + 1);  // so that to free one needs no memory
    items_.emplace_back();
    free_items_.push_back(static_cast<std::uint32_t>(items_.size() - 1));
  }
  const std::uint32_t item = free_items_.back();
  free_items_.pop_back();
  items_[item] = {.parcel = parcel, .is_used = true};
  return item;
}

/// After it the work may be gone.
void Mailbox::finish(std::uint32_t item, const Status& status) noexcept {
  Work* const work = items_[item].parcel.work;
  recorder_->end(items_[item].record, status.ok());
  items_[item].is_used = false;
  free_items_.push_back(item);
  work->finish(status);
}

Mailbox::Letter Mailbox::read(const std::byte* from) noexcept {
  return {.kind = static_cast<LetterKind>(load_little_endian<std::uint16_t>(from)),
          .type = static_cast<DataType>(load_little_endian<std::uint16_t>(from + 2)),
          .tag = load_little_endian<std::uint32_t>(from + 4),
          .bytes = load_little_endian<std::uint64_t>(from + 8),
          .number = load_little_endian<std::uint64_t>(from + 16)};
}

void Mailbox::write(const Letter& letter, std::byte* to) noexcept {
  store_little_endian(to, static_cast<std::uint16_t>(letter.kind));
  store_little_endian(to + 2, static_cast<std::uint16_t>(letter.type));
  store_little_endian(to + 4, letter.tag);
  store_little_endian(to + 8, letter.bytes);
  store_little_endian(to + 16, letter.number);
}

}  // namespace hocket::engine
