#include "conformance/transport_world.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace hocket::testing {
namespace {

constexpr std::size_t guard_bytes = 32;
constexpr std::byte guard{0xA5};
constexpr std::byte poison_byte{0xEE};

/// Messages of different numbers differ almost everywhere, also when they are shifted.
void write_pattern(MemoryPart part, std::uint64_t seed, std::uint64_t offset) {
  for (std::uint64_t i = 0; i < part.bytes; ++i) {
    const std::uint64_t place = offset + i;
    const std::uint64_t word = (place / 8 + seed * 0x9E37'79B9) * 0xBF58'476D'1CE4'E5B9;
    part.data[i] = static_cast<std::byte>(word >> (8 * (place % 8)));
  }
}

MemoryPart front_of(MemoryPart part, std::uint64_t bytes) {
  return {part.data, std::min(part.bytes, bytes)};
}

bool is_equal(MemoryPart part, const std::byte* wanted) {
  return part.bytes == 0 || std::memcmp(part.data, wanted, part.bytes) == 0;
}

bool is_all(const std::byte* from, std::uint64_t bytes, std::byte value) {
  return std::all_of(from, from + bytes, [value](std::byte each) { return each == value; });
}

}  // namespace

// --- Parcel ---

Parcel::Parcel(std::uint64_t bytes, std::uint64_t split)
    : bytes_(bytes), split_(split), memory_(bytes + 3 * guard_bytes, guard) {
  poison();
}

MemoryPart Parcel::first() noexcept {
  return {split_ == 0 ? nullptr : memory_.data() + guard_bytes, split_};
}

MemoryPart Parcel::rest() noexcept {
  const std::uint64_t bytes = bytes_ - split_;
  return {bytes == 0 ? nullptr : memory_.data() + 2 * guard_bytes + split_, bytes};
}

void Parcel::fill(std::uint64_t seed) {
  write_pattern(first(), seed, 0);
  write_pattern(rest(), seed, split_);
}

void Parcel::poison() {
  for (const MemoryPart part : {first(), rest()}) {
    std::fill_n(part.data, part.bytes, poison_byte);
  }
}

bool Parcel::holds(std::uint64_t seed, std::uint64_t bytes) {
  std::vector<std::byte> wanted(bytes);
  write_pattern({wanted.data(), bytes}, seed, 0);
  const MemoryPart head = front_of(first(), bytes);
  const MemoryPart tail = front_of(rest(), bytes - head.bytes);
  return head.bytes + tail.bytes == bytes && is_equal(head, wanted.data()) &&
         is_equal(tail, wanted.data() + head.bytes) && has_guards();
}

bool Parcel::is_poisoned() {
  return is_all(first().data, first().bytes, poison_byte) &&
         is_all(rest().data, rest().bytes, poison_byte) && has_guards();
}

bool Parcel::has_guards() const {
  const std::byte* const memory = memory_.data();
  return is_all(memory, guard_bytes, guard) &&
         is_all(memory + guard_bytes + split_, guard_bytes, guard) &&
         is_all(memory + 2 * guard_bytes + bytes_, guard_bytes, guard);
}

// --- TransportWorld ---

TransportWorld::TransportWorld(const TransportSubject& subject, std::uint32_t size,
                               const TransportOptions& options, bool is_connected)
    : net_(subject.make_net()), ranks_(size) {
  for (std::uint32_t i = 0; i < size; ++i) {
    TransportOptions each = options;
    each.rank = i;
    each.size = size;
    ranks_[i].transport = net_->make(std::move(each));
    addresses_.push_back(at(i).address());
  }
  for (std::uint32_t i = 0; is_connected && i < size; ++i) connect(i);
}

void TransportWorld::connect(std::uint32_t rank) { require(at(rank).connect(addresses_)); }

ChannelId TransportWorld::channel(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane) {
  auto& channels = ranks_.at(rank).channels;
  const auto found = channels.find({peer, lane});
  if (found != channels.end()) return found->second;
  const ChannelId opened = require(at(rank).open(peer, lane));
  channels[{peer, lane}] = opened;
  ranks_.at(rank).ends[opened] = {peer, lane};
  return opened;
}

Token TransportWorld::send(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane,
                           Parcel& parcel) {
  return post(rank, {.kind = TransportOp::Kind::send,
                     .channel = channel(rank, peer, lane),
                     .first = parcel.first(),
                     .rest = parcel.rest()});
}

Token TransportWorld::receive(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane,
                              Parcel& parcel, bool may_lend) {
  return post(rank, {.kind = TransportOp::Kind::recv,
                     .may_lend = may_lend,
                     .channel = channel(rank, peer, lane),
                     .first = parcel.first(),
                     .rest = parcel.rest()});
}

Token TransportWorld::post(std::uint32_t rank, TransportOp op) {
  op.token = outcomes_.size();
  if (op.kind == TransportOp::Kind::send) {
    // Every third has none.
    op.tag = op.token % 3 == 0 ? 0 : (op.token + 1) * 0x9E37'79B9'7F4A'7C15;
    const auto end = ranks_.at(rank).ends.find(op.channel);
    if (end != ranks_.at(rank).ends.end()) {
      const auto [peer, lane] = end->second;
      tags_[{rank, peer, lane}].push_back(op.tag);
    }
  }
  outcomes_.push_back({.rank = rank, .op = op});
  queues_[{rank, op.channel, op.kind}].push_back(op.token);
  ranks_.at(rank).backlog.push_back(op);
  ++outstanding_;
  return op.token;
}

bool TransportWorld::pump() {
  bool has_moved = false;
  for (std::uint32_t i = 0; i < size(); ++i) {
    if (ranks_[i].transport == nullptr) continue;
    has_moved = offer(ranks_[i]) || has_moved;
    has_moved = poll(i) || has_moved;
  }
  return has_moved;
}

void TransportWorld::pump_rounds(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    if (!pump()) net_->pass_time();
  }
}

bool TransportWorld::offer(Rank& rank) {
  const std::span<const TransportOp> rest = std::span(rank.backlog).subspan(rank.offered);
  if (rest.empty()) return false;
  const std::size_t count = std::min(rest.size(), post_batch_);
  const std::size_t accepted = rank.transport->post(rest.first(count));
  if (accepted > count) FAIL("more ops accepted than offered");
  rank.offered += accepted;
  if (rank.offered == rank.backlog.size()) {
    rank.backlog.clear();
    rank.offered = 0;
  }
  return accepted > 0;
}

bool TransportWorld::poll(std::uint32_t number) {
  std::vector<TransportCompletion> completions(poll_batch_);
  const std::size_t count = at(number).poll(completions);
  if (count > poll_batch_) FAIL("more completions than there is room for");
  for (std::size_t i = 0; i < count; ++i) complete(number, completions[i]);
  return count > 0;
}

void TransportWorld::complete(std::uint32_t number, const TransportCompletion& completion) {
  if (completion.token >= outcomes_.size()) FAIL("a completion of no op");
  Outcome& outcome = outcomes_[completion.token];
  if (outcome.is_over || outcome.rank != number) FAIL("a second completion of an op");
  auto& queue = queues_[{number, outcome.op.channel, outcome.op.kind}];
  if (queue.front() != completion.token) FAIL("a completion before its turn");
  queue.pop_front();
  outcome.is_over = true;
  outcome.bytes = completion.bytes;
  outcome.tag = completion.tag;
  outcome.status = completion.status;
  --outstanding_;
  check_tag(outcome, completion);
  if (completion.lent == nullptr) return;
  if (!outcome.op.may_lend) FAIL("a loan that nobody asked for");
  const auto& [first, rest] = std::pair(outcome.op.first, outcome.op.rest);
  const std::uint64_t head = std::min(first.bytes, completion.bytes);
  std::copy_n(completion.lent, head, first.data);
  std::copy_n(completion.lent + head, completion.bytes - head, rest.data);
  at(number).give_back(completion.lent);
}

void TransportWorld::check_tag(const Outcome& outcome, const TransportCompletion& completion) {
  const bool is_ok = completion.status.ok();
  if (outcome.op.kind == TransportOp::Kind::send) {
    if (is_ok && completion.tag != outcome.op.tag) FAIL("a send that ends with another tag");
    return;
  }
  const auto end = ranks_.at(outcome.rank).ends.find(outcome.op.channel);
  if (end == ranks_.at(outcome.rank).ends.end()) return;
  const auto [peer, lane] = end->second;
  const auto sent = tags_.find({peer, outcome.rank, lane});
  if (sent == tags_.end()) return;  // by another process
  std::deque<std::uint64_t>& tags = sent->second;
  if (is_ok && (tags.empty() || tags.front() != completion.tag)) {
    FAIL("a message that comes with another tag");
  }
  if (!tags.empty()) tags.pop_front();
}

void TransportWorld::require_success(Token token) {
  finish(token);
  INFO("rank " << outcome(token).rank << ", op " << token);
  require(outcome(token).status);
}

void TransportWorld::require_failure(Token token, StatusCode code) {
  finish(token);
  INFO("rank " << outcome(token).rank << ", op " << token);
  INFO(outcome(token).status.to_string());
  REQUIRE(outcome(token).status.code() == code);
}

void TransportWorld::end(std::uint32_t rank) {
  ranks_.at(rank) = Rank();
  for (Outcome& outcome : outcomes_) {
    if (outcome.rank != rank || outcome.is_over) continue;
    outcome.is_over = true;
    --outstanding_;
  }
}

std::string TransportWorld::pending() const {
  std::string text = fmt::format("{} ops are not over:", outstanding_);
  for (std::size_t i = 0; i < outcomes_.size() && text.size() < 400; ++i) {
    const Outcome& each = outcomes_[i];
    if (each.is_over) continue;
    text += fmt::format(" {} {} of {} bytes by rank {} on channel {};", i,
                        each.op.kind == TransportOp::Kind::send ? "send" : "receive",
                        each.op.bytes(), each.rank, each.op.channel);
  }
  return text;
}

std::uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace hocket::testing
