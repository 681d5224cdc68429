#include "transports/tcp/transport.hpp"

#include <algorithm>
#include <optional>

#include <sys/socket.h>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "link/sockets.hpp"
#include "net/interfaces.hpp"
#include "net/silence.hpp"
#include "transports/common/failures.hpp"

namespace hocket::tcp {
namespace {

/// With so few streams to wait for, it is cheaper to try them than to ask which has something.
constexpr std::size_t tried_max = 2;
/// For the others, that are not tried.
constexpr unsigned polls_between_looks = 16;
/// So often in HOCKET_HOST_TIMEOUT the system is asked whether hosts answer.
constexpr int checks_per_timeout = 16;
/// By who polls and never sleeps; the clock is asked no more often.
constexpr unsigned looks_between_checks = 256;
/// For so many ops there is room to say that they failed, from the beginning on.
constexpr std::uint64_t failures_min = 64;

}  // namespace

Result<std::unique_ptr<Transport>> TcpTransport::make(const TransportOptions& options,
                                                      std::uint32_t streams,
                                                      std::string_view interfaces) {
  raise_open_files_max();
  std::unique_ptr<TcpTransport> made(new TcpTransport(net::host_timeout()));
  const std::string host = options.host.empty() ? "127.0.0.1" : options.host;
  auto hosts = net::choose_addresses(host, interfaces);
  if (!hosts.ok()) return hosts.status();
  hosts->resize(std::min(hosts->size(), limits::tcp_rails_max));
  made->failures_.reserve(failures_min);
  Status status = made->poller_.open();
  if (status.ok()) status = made->links_.open(options, streams, *hosts);
  if (!status.ok()) return status;
  return std::unique_ptr<Transport>(std::move(made));
}

/// Input that nobody has read would make the system drop what it has not delivered yet.
TcpTransport::~TcpTransport() {
  for (const auto& channel : channels_) {
    if (channel == nullptr) continue;
    for (const auto& stream : channel->streams) {
      if (!stream->is_linked()) continue;
      const Fd socket = stream->leave(std::nullopt);
      static_cast<void>(link::discard_input(socket.get()));
    }
    if (channel->bundle == nullptr) continue;
    channel->bundle->leave(Frame::Kind::left, 0, [](const Fd& socket) {
      static_cast<void>(link::discard_input(socket.get()));
    });
  }
}

Result<ChannelId> TcpTransport::open(std::uint32_t peer, std::uint64_t lane) {
  if (Status status = can_reach(peer); !status.ok()) return status;
  const bool is_over = links_.is_closed(lane);
  const bool was_open = !is_over && links_.is_closed({.peer = peer, .lane = lane});
  if (was_open || by_lane_.contains({lane, peer})) {
    return Status(StatusCode::already_exists,
                  fmt::format("lane {} to rank {} is open already", lane, peer))
        .with_peer(static_cast<int>(peer));
  }
  if (channels_.is_full()) return common::too_many_channels(channels_.size());
  Channel& channel = make_channel(peer, lane);
  if (is_over) {
    channel.failure = described([&] {
      return Status(StatusCode::aborted, fmt::format("lane {} was closed", lane))
          .with_peer(static_cast<int>(peer));
    });
    return channel.id;
  }
  Status status = described([&] { return claim(channel); });
  if (status.ok()) return channel.id;
  fail(channel.id, status, false);
  return status;
}

/// Has changed nothing when it throws.
TcpTransport::Channel& TcpTransport::make_channel(std::uint32_t peer, std::uint64_t lane) {
  auto made = std::make_unique<Channel>();
  Channel& channel = *made;
  channel.id = channels_.next();
  channel.lane = lane;
  channel.queues.peer = peer;
  channel.queues.streams = links_.streams(peer);
  if (links_.ways(peer) > 1) {
    channel.bundle =
        std::make_unique<Bundle>(channel.id, channel.queues, channel.queues.streams, poller_);
  }
  for (std::uint32_t i = 0; i < channel.queues.streams && channel.bundle == nullptr; ++i) {
    channel.streams.push_back(std::make_unique<Stream>(channel.id, channel.queues, i));
  }
  make_room(streams_ + channel.queues.streams);
  by_lane_.try_emplace({lane, peer}, channel.id);
  has_bundles_ = has_bundles_ || channel.bundle != nullptr;
  streams_ += channel.queues.streams;
  channels_.add(std::move(made));
  return channel;
}

/// For one more channel, and so many streams of all; also for what closing them takes.
void TcpTransport::make_room(std::size_t streams) {
  const std::size_t channels = channels_.size() + 1;
  channels_.make_room();
  finishing_.reserve(channels);
  for (auto* const list : {&due_, &due_now_}) common::make_room_in(*list, channels);
  common::make_room_in(closed_, channels);
  for (auto* const list : {&turns_, &now_, &waiting_}) common::make_room_in(*list, streams);
  links_.make_room_for_closed_lanes();
}

Status TcpTransport::claim(Channel& channel) {
  for (std::uint32_t i = 0; i < channel.queues.streams; ++i) {
    std::optional<link::Link> link;
    static_cast<void>(
        links_.claim({.peer = channel.queues.peer, .lane = channel.lane, .stream = i}, link));
    if (!link) continue;
    if (Status status = adopt(channel, i, std::move(*link)); !status.ok()) return status;
  }
  return {};
}

Status TcpTransport::adopt(Channel& channel, std::uint32_t number, link::Link link) {
  if (channel.bundle != nullptr) {
    links_.hurry(channel.queues.peer, channel.lane);
    return channel.bundle->adopt(number, std::move(link));
  }
  Stream& stream = *channel.streams[number];
  stream.adopt(std::move(link));
  return poller_.add(stream.socket(), stream);
}

// --- ops ---

std::size_t TcpTransport::post(std::span<const TransportOp> ops) noexcept {
  std::size_t count = 0;
  for (; count < ops.size() && has_room_for(ops[count]); ++count) {
    ++outstanding_;
    take_op(ops[count]);
  }
  send_what_is_new();
  return count;
}

template <class Work>
void TcpTransport::guarded(ChannelId id, const Work& work) noexcept {
  try {
    work();
  } catch (...) {
    if (!channel(id).is_over()) fail(id, status_of_exception(), true);
  }
}

/// Also to say that it failed. Without memory for that its channel fails, so that there will be.
inline bool TcpTransport::has_room_for(const TransportOp& op) noexcept {
  if (outstanding_ >= limits::transport_ops_max) return false;
  try {
    failures_.reserve(outstanding_ + 1);
    return true;
  } catch (...) {
    close(op.channel, status_of_exception());
    return false;
  }
}

Status TcpTransport::no_channel(ChannelId id) const {
  const bool is_over = channels_.has_place_of(id);
  return {is_over ? StatusCode::aborted : StatusCode::invalid_argument,
          fmt::format("there is no channel {}{}", id, is_over ? " any more" : "")};
}

[[gnu::always_inline]] inline void TcpTransport::enqueue(Channel& channel, const TransportOp& op) {
  if (!channel.has_dialled) begin(channel);
  common::Ring<Slot>& queue = queue_of(channel, op);
  Slot slot = {.first = op.first, .rest = op.rest, .token = op.token};
  if (op.kind == TransportOp::Kind::send) {
    slot.bytes = op.bytes();
    slot.header = make_header(slot.bytes, op.tag, queue.end());
  }
  queue.push(slot);
}

void TcpTransport::take_op(const TransportOp& op) noexcept {
  Channel* const found = find(op.channel);
  if (found == nullptr) {
    return failures_.push(
        {.token = op.token, .status = described([&] { return no_channel(op.channel); })});
  }
  Channel& channel = *found;
  bool is_taken = false;
  if (!channel.is_over()) {
    guarded(op.channel, [&] {
      enqueue(channel, op);
      is_taken = true;
    });
  }
  if (!is_taken) return failures_.push({.token = op.token, .status = channel.failure});
  if (channel.bundle != nullptr) {
    channel.bundle->is_due = true;
    return place(*channel.bundle);
  }
  place(*channel.streams[(queue_of(channel, op).end() - 1) % channel.streams.size()]);
  if (channel.ended > 0) judge_end(op.channel);
}

void TcpTransport::begin(Channel& channel) {
  channel.has_dialled = true;
  for (std::uint32_t i = 0; i < channel.queues.streams; ++i) {
    links_.dial({.peer = channel.queues.peer, .lane = channel.lane, .stream = i});
  }
  if (channel.bundle != nullptr && channel.bundle->is_linked()) {
    links_.hurry(channel.queues.peer, channel.lane);
  }
}

void TcpTransport::send_what_is_new() noexcept {
  for (Stream* const stream : turns_) {
    if (!stream->wants_output() || stream->is_blocked()) continue;
    guarded(stream->channel, [&] { send(*stream); });
  }
  for (Bundle* const bundle : due_) {
    guarded(bundle->channel, [&] { bundle->send(); });
  }
}

/// A failure is met again by the next turn, which reads what has come before.
void TcpTransport::send(Stream& stream) {
  if (Status status = stream.send(); !status.ok()) return;
  finish(stream.channel);
  place(stream);
}

std::size_t TcpTransport::poll(std::span<TransportCompletion> completions) noexcept {
  has_moved_ = false;
  if (should_look()) {
    look();
  } else {
    for (Stream* const stream : waiting_) {
      stream->try_to_read();
      place(*stream);
    }
  }
  take_turns();
  if (has_bundles_) take_turns_of_bundles();
  return emit(completions);
}

bool TcpTransport::prepare_to_sleep() noexcept {
  while (look()) {
  }
  const Instant now = monotonic_clock().now();
  check_answers(now);
  std::erase_if(turns_, [](Stream* stream) {
    stream->is_in_turn = stream->is_ready();
    return !stream->is_in_turn;
  });
  std::erase_if(due_, [](Bundle* bundle) {
    bundle->is_in_turn = bundle->is_ready();
    return !bundle->is_in_turn;
  });
  const bool has_work = !turns_.empty() || !due_.empty() || !finishing_.empty();
  if (has_work || !failures_.empty() || links_.has_news()) return false;
  const Deadline next = next_tick();
  if (next.passed(now)) return false;  // its alarm may be over
  const Deadline check = outstanding_ > 0 ? check_at_ : Deadline::never();
  poller_.wake_at(links_.next().or_sooner(next).or_sooner(check));
  return true;
}

void TcpTransport::close(ChannelId channel, const Status& reason) noexcept {
  Channel* const found = find(channel);
  if (found == nullptr || std::exchange(found->is_closed, true)) return;
  closed_.push_back(channel);
  if (found->is_over()) return;
  Status why = described(
      [&] { return reason.ok() ? Status(StatusCode::aborted, "the channel was closed") : reason; });
  fail(channel, std::move(why), true);
}

void TcpTransport::close_lanes(std::uint64_t first, std::uint64_t last,
                               const Status& reason) noexcept {
  // Whoever has dialled already was welcome, and is told goodbye; without memory for that it sees
  // its connection end.
  try {
    for (const common::LinkKey& key : links_.parked(first, last)) {
      if (!by_lane_.contains({key.lane, key.peer})) static_cast<void>(open(key.peer, key.lane));
    }
  } catch (const std::bad_alloc&) {
  }
  auto each = by_lane_.lower_bound({first, 0});
  for (; each != by_lane_.end() && each->first.first <= last; ++each) close(each->second, reason);
  links_.close_lanes(first, last, pack_reason(reason));
}

bool TcpTransport::is_listed(const Channel& channel) noexcept {
  const auto is_in_turn = [](const auto& stream) { return stream->is_in_turn; };
  return channel.is_finishing || std::ranges::any_of(channel.streams, is_in_turn) ||
         (channel.bundle != nullptr && channel.bundle->is_in_turn);
}

void TcpTransport::bury() noexcept {
  std::erase_if(closed_, [this](ChannelId id) {
    const Channel& over = channel(id);
    if (is_listed(over)) return false;
    by_lane_.erase({over.lane, over.queues.peer});
    streams_ -= over.queues.streams;
    channels_.remove(id);
    return true;
  });
}

// --- what happens ---

bool TcpTransport::should_look() noexcept {
  return has_bundles_ || waiting_.empty() || waiting_.size() > tried_max || blocked_ > 0 ||
         !links_.is_quiet() || ++polls_ % polls_between_looks == 0;
}

bool TcpTransport::look() noexcept {
  const std::span<common::Event> events = poller_.look();
  for (const common::Event& event : events) {
    if (event.pollee == nullptr) continue;
    if (event.pollee->role == common::Pollee::Role::rail) {
      auto& rail = static_cast<Rail&>(*event.pollee);
      rail.note(event);
      place(rail.bundle);
      continue;
    }
    if (event.pollee->role != common::Pollee::Role::stream) {
      links_.handle(event);
      continue;
    }
    auto& stream = static_cast<Stream&>(*event.pollee);
    stream.note(event);
    place(stream);
  }
  if (!links_.is_idle()) links_.expire();
  if (links_.has_news()) take_news();
  if (!closed_.empty()) bury();
  if (++looks_ % looks_between_checks == 0) check_answers(monotonic_clock().now());
  return events.size() == common::Poller::events_at_once;
}

void TcpTransport::take_news() noexcept {
  links_.take_news(news_);
  for (common::LinkNews& news : news_) {
    const auto found = by_lane_.find({news.key.lane, news.key.peer});
    if (found == by_lane_.end() || channel(found->second).is_over()) continue;
    guarded(found->second, [&] { take(news, found->second); });
  }
  while (const auto key = links_.take_starved()) {
    const auto found = by_lane_.find({key->lane, key->peer});
    if (found == by_lane_.end() || channel(found->second).is_over()) continue;
    fail(found->second, Status::out_of_memory(), false);
  }
}

void TcpTransport::take(common::LinkNews& news, ChannelId id) {
  Channel& channel = this->channel(id);
  if (!channel.suspicion.ok()) {
    if (!news.peer_closed && news.key.stream != 0) return;  // that was not asked
    return fail(id, news.peer_closed ? std::move(news.failure) : channel.suspicion, false);
  }
  if (news.failure.ok()) {
    news.failure = adopt(channel, news.key.stream, std::move(news.link));
  } else if (channel.bundle != nullptr) {
    news.failure = channel.bundle->give_up(news.key.stream, news.failure);
    const bool was_there = channel.bundle->was_linked() && !news.peer_closed;
    if (!news.failure.ok() && was_there) return lose(id, news.failure);
  }
  if (!news.failure.ok()) return fail(id, std::move(news.failure), false);
  if (channel.bundle != nullptr) return place(*channel.bundle);
  place(*channel.streams[news.key.stream]);
}

void TcpTransport::take_turns() noexcept {
  now_.swap(turns_);
  for (Stream* const stream : now_) {
    stream->is_in_turn = false;
    if (stream->is_linked()) guarded(stream->channel, [&] { take_turn(*stream); });
  }
  now_.clear();
}

void TcpTransport::take_turn(Stream& stream) {
  stream.begin_turn();
  Status status = move(stream);
  has_moved_ |= stream.has_moved();
  finish(stream.channel);
  if (!status.ok() && status.code() != StatusCode::peer_lost && !stream.peer_closed()) {
    return fail(stream.channel, std::move(status), true);
  }
  if (!status.ok()) {
    stream.end(std::move(status));
    ++channel(stream.channel).ended;
  }
  place(stream);
  if (channel(stream.channel).ended > 0) judge_end(stream.channel);
}

/// What came before the end of a connection is received before the end is known to anybody.
Status TcpTransport::move(Stream& stream) {
  Status failure;
  if (stream.is_ending()) failure = stream.look_for_end();
  if (failure.ok() && stream.wants_output()) failure = stream.send();
  do {
    if (!stream.wants_input()) return failure;
    if (Status status = stream.receive(scratch_); !status.ok()) return status;
  } while (!failure.ok() && stream.is_ready());
  return failure;
}

void TcpTransport::place(Stream& stream) noexcept {
  if (!stream.is_in_turn && stream.is_ready()) {
    stream.is_in_turn = true;
    turns_.push_back(&stream);
  }
  if (stream.is_blocked() != stream.counts_as_blocked) {
    stream.counts_as_blocked = !stream.counts_as_blocked;
    stream.counts_as_blocked ? ++blocked_ : --blocked_;
  }
  const bool is_waiting = stream.waiting_at != Stream::nowhere;
  if (stream.wants_input() == is_waiting) return;
  if (!is_waiting) {
    stream.waiting_at = waiting_.size();
    waiting_.push_back(&stream);
  } else {
    waiting_.back()->waiting_at = stream.waiting_at;
    waiting_[stream.waiting_at] = waiting_.back();
    waiting_.pop_back();
    stream.waiting_at = Stream::nowhere;
  }
}

// --- channels over several connections ---

void TcpTransport::place(Bundle& bundle) noexcept {
  if (bundle.is_in_turn || !bundle.is_ready()) return;
  bundle.is_in_turn = true;
  due_.push_back(&bundle);
}

void TcpTransport::take_turns_of_bundles() noexcept {
  tick();
  due_now_.swap(due_);
  for (Bundle* const bundle : due_now_) {
    bundle->is_in_turn = false;
    if (channel(bundle->channel).is_over()) continue;
    guarded(bundle->channel, [&] { take_turn(*bundle); });
  }
  due_now_.clear();
}

void TcpTransport::take_turn(Bundle& bundle) {
  Status status = bundle.move(scratch_);
  has_moved_ |= bundle.has_moved();
  finish(bundle.channel);
  if (!status.ok()) {
    const bool is_lost = status.code() == StatusCode::peer_lost && !bundle.peer_closed();
    is_lost ? lose(bundle.channel, status)
            : fail(bundle.channel, std::move(status), !bundle.peer_closed());
  }
  place(bundle);
}

Deadline TcpTransport::next_tick() const noexcept {
  const bool is_needed = has_bundles_ && std::ranges::any_of(channels_, [](const auto& each) {
                           return each != nullptr && each->bundle != nullptr && !each->is_over() &&
                                  each->bundle->is_owed();
                         });
  return is_needed ? tick_at_ : Deadline::never();
}

void TcpTransport::tick() noexcept {
  const Instant now = monotonic_clock().now();
  if (!tick_at_.is_never() && !tick_at_.passed(now)) return;
  tick_at_ = Deadline(now + Bundle::tick_time);
  for (const auto& channel : channels_) {
    if (channel == nullptr || channel->bundle == nullptr || channel->is_over()) continue;
    Bundle& bundle = *channel->bundle;
    guarded(bundle.channel, [&] { bundle.tick(); });
    place(bundle);
  }
}

// --- hosts that do not answer ---

void TcpTransport::check_answers(Instant now) noexcept {
  if (!check_at_.is_never() && !check_at_.passed(now)) return;
  check_at_ = Deadline(now + host_timeout_ / checks_per_timeout);
  for (const auto& each : channels_) {
    if (each == nullptr || each->is_over()) continue;
    const bool is_waited_for = !each->queues.sends.empty() || !each->queues.receives.empty();
    if (is_waited_for) guarded(each->id, [&] { check_answers(*each, now); });
  }
}

void TcpTransport::check_answers(Channel& channel, Instant now) {
  if (channel.bundle != nullptr) {
    channel.bundle->check_answers(now, host_timeout_);
    return place(*channel.bundle);
  }
  for (const auto& stream : channel.streams) {
    const bool is_alive = stream->is_linked() && !stream->has_end();
    if (!is_alive || !stream->is_unanswered(now, host_timeout_)) continue;
    stream->end(common::unanswered_by_peer(channel.queues.peer));
    ++channel.ended;
    place(*stream);
  }
  judge_end(channel.id);
}

// --- ops that are over ---

void TcpTransport::finish(ChannelId id) noexcept {
  Channel& channel = this->channel(id);
  const auto has_finished = [](common::Ring<Slot>& queue) {
    return !queue.empty() && queue.front().is_done;
  };
  if (channel.is_finishing ||
      (!has_finished(channel.queues.sends) && !has_finished(channel.queues.receives))) {
    return;
  }
  channel.is_finishing = true;
  finishing_.push(id);
}

/// Of several streams one may end while messages that came before are still on the others.
void TcpTransport::judge_end(ChannelId id) noexcept {
  const Channel& channel = this->channel(id);  // a bundle judges itself
  if (channel.is_over()) return;
  const Stream* next = nullptr;  // has the oldest receive that is not over
  const Stream* last = nullptr;
  bool has_sends = false;
  for (const auto& stream : channel.streams) {
    const bool is_older = next == nullptr || stream->receiving() < next->receiving();
    if (stream->has_receives() && is_older) next = stream.get();
    if (stream->has_end()) last = stream.get();
    has_sends = has_sends || stream->has_sends();
  }
  const bool is_waited_for = has_sends || channel.ended == channel.streams.size();
  if (next == nullptr && is_waited_for) next = last;
  if (next == nullptr || !next->has_end()) return;
  next->peer_closed() ? fail(id, next->why(), false) : lose(id, next->why());
}

/// The other end seems to be gone. A live rank that broke off in the middle of a message could not
/// say why, so it is asked before it is reported as lost.
void TcpTransport::lose(ChannelId id, const Status& why) noexcept {
  Channel& channel = this->channel(id);
  if (!channel.suspicion.ok()) return;
  channel.suspicion = why;
  guarded(id, [&] { links_.ask({.peer = channel.queues.peer, .lane = channel.lane}); });
}

void TcpTransport::fail(ChannelId id, Status why, bool has_farewell) noexcept {
  Channel& channel = this->channel(id);
  const std::uint64_t reason = pack_reason(why);
  if (why.peer() < 0) why = std::move(why).with_peer(static_cast<int>(channel.queues.peer));
  channel.failure = std::move(why);
  for (std::uint32_t i = 0; i < channel.queues.streams; ++i) {
    links_.close({.peer = channel.queues.peer, .lane = channel.lane, .stream = i}, reason);
  }
  leave(channel, has_farewell ? std::optional(reason) : std::nullopt);
  // Only a message that was too long for its receive keeps its tag. What the other end told, or a
  // header that came in part, is none.
  const bool may_have_tag = has_farewell && channel.failure.code() == StatusCode::mismatch;
  for (common::Ring<Slot>* const queue : {&channel.queues.sends, &channel.queues.receives}) {
    while (!queue->empty()) {
      const Slot slot = queue->pop();
      failures_.push({.token = slot.token,
                      .bytes = slot.is_done ? slot.bytes : 0,
                      .tag = slot.is_done || may_have_tag ? slot.tag() : 0,
                      .status = slot.is_done ? Status() : channel.failure});
    }
  }
}

void TcpTransport::leave(Channel& channel, std::optional<std::uint64_t> reason) noexcept {
  const auto see_off = [&](Fd socket) {
    if (reason) links_.see_off(std::move(socket));
  };
  for (const auto& stream : channel.streams) {
    if (!stream->is_linked()) continue;
    poller_.forget(*stream, stream->socket());
    see_off(stream->leave(reason));
    place(*stream);  // in no list any more
  }
  if (channel.bundle == nullptr) return;
  channel.bundle->leave(reason ? Frame::Kind::closed : Frame::Kind::left, reason.value_or(0),
                        see_off);
}

std::size_t TcpTransport::emit(std::span<TransportCompletion> completions) noexcept {
  std::size_t count = 0;
  while (!finishing_.empty() && count < completions.size()) {
    Channel& channel = this->channel(finishing_.front());
    const auto take_done = [&](common::Ring<Slot>& queue) {
      while (count < completions.size() && !queue.empty() && queue.front().is_done) {
        const Slot slot = queue.pop();
        completions[count++] = {.token = slot.token, .bytes = slot.bytes, .tag = slot.tag()};
      }
    };
    take_done(channel.queues.sends);
    take_done(channel.queues.receives);
    channel.is_finishing = false;
    finish(finishing_.pop());
  }
  while (!failures_.empty() && count < completions.size()) completions[count++] = failures_.pop();
  outstanding_ -= count;
  return count;
}

}  // namespace hocket::tcp
