#include "transports/shm/transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <optional>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/rng.hpp"

namespace hocket::shm {
namespace {

/// Of a channel, that nobody has received yet.
constexpr std::uint64_t notes_on_the_way_max = 64;
constexpr std::uint64_t bytes_on_the_way_max = 1 << 20;
/// To say that a note is read costs as much as a note. So the writer is told of many at once,
/// before it would have to wait.
constexpr std::uint32_t notes_untold_max = notes_kept / 4;
constexpr std::uint32_t parts_untold_max = notes_on_the_way_max / 4;
/// By who polls and never sleeps: for processes that have ended, and channels that are over.
constexpr unsigned polls_between_looks = 256;
/// So many channels that are over are worth a look.
constexpr std::size_t buried_at_once = 16;
/// In the epoll, beside the ranks of processes.
constexpr std::uint64_t bell_event = UINT64_MAX;

/// Others see what was written before, if they have not yet written what is read after it.
void order_all() noexcept {
#ifdef __SANITIZE_THREAD__  // g++ refuses fences there
  static std::atomic<int> any = 0;
  any.fetch_add(1, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Calls visit(data, bytes) for each piece of memory of an op between two places in it.
template <class Visit>
void visit(const TransportOp& op, std::uint64_t begin, std::uint64_t end, Visit visit) {
  if (begin < op.first.bytes) {
    visit(op.first.data + begin, std::min(end, op.first.bytes) - begin);
  }
  if (end > op.first.bytes) {
    const std::uint64_t from = std::max(begin, op.first.bytes);
    visit(op.rest.data + (from - op.first.bytes), end - from);
  }
}

void copy_from(const TransportOp& op, std::uint64_t begin, std::byte* to, std::size_t bytes) {
  visit(op, begin, begin + bytes, [&](const std::byte* data, std::uint64_t part) {
    std::memcpy(to, data, part);
    to += part;
  });
}

void copy_to(const TransportOp& op, std::uint64_t begin, const std::byte* from, std::size_t bytes) {
  visit(op, begin, begin + bytes, [&](std::byte* data, std::uint64_t part) {
    std::memcpy(data, from, part);
    from += part;
  });
}

Status peer_lost(std::uint32_t rank, std::string_view how) {
  return Status(StatusCode::peer_lost, fmt::format("rank {} {}", rank, how))
      .with_peer(static_cast<int>(rank));
}

}  // namespace

ShmTransport::ShmTransport(const TransportOptions& options, Board board)
    : rank_(options.rank),
      size_(options.size),
      epoch_(options.epoch),
      board_(std::move(board)),
      address_(Address::own()) {}

Result<std::unique_ptr<Transport>> ShmTransport::make(const TransportOptions& options) {
  raise_open_files_max();
  std::array<std::uint64_t, 2> secret = {};
  random_bytes(std::as_writable_bytes(std::span(secret)));
  auto board = Board::make(
      {.epoch = options.epoch, .rank = options.rank, .size = options.size, .secret = secret});
  if (!board.ok()) return board.status();
  std::unique_ptr<ShmTransport> made(new ShmTransport(options, *std::move(board)));
  made->address_.secret = secret;
  if (Status status = made->set_up(); !status.ok()) return status;
  return std::unique_ptr<Transport>(std::move(made));
}

Status ShmTransport::set_up() {
  std::array<int, 2> ends = {-1, -1};
  bell_ = Fd::open_unforked(
      [&] { return ::pipe2(ends.data(), O_NONBLOCK | O_CLOEXEC) == 0 ? ends[0] : -1; });
  if (bell_) bell_pull_ = Fd::open_unforked([&] { return ends[1]; });
  epoll_ = Fd::open_unforked([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = bell_event}};
  if (!bell_ || !bell_pull_ || !epoll_ ||
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_.get(), &event) != 0) {
    return Status(StatusCode::system_error, "can't make a pipe to be woken by")
        .with_system_error(errno)
        .with_hint("raise the limit of open files: ulimit -n");
  }
  address_.board = board_.file();
  address_.bell = bell_.get();
  peers_.resize(size_);
  left_.resize(size_);
  active_.reserve(size_);
  dirty_.reserve(size_);
  return {};
}

ShmTransport::~ShmTransport() {
  board_.header().has_left.store(1, std::memory_order_release);
  meet_readers();
  for (Peer* const peer : active_) mark(*peer);
  ring();
}

Status ShmTransport::connect(std::span<const std::string> addresses) {
  return described([&] {
    addresses_.assign(addresses.begin(), addresses.end());
    is_here_.resize(addresses_.size());
    for (std::uint32_t rank = 0; rank < addresses_.size(); ++rank) {
      const auto address = Address::parse(addresses_[rank]);
      is_here_[rank] = rank != rank_ && address.ok() && address->offset == address_.offset;
    }
    return Status();
  });
}

Status ShmTransport::can_reach(std::uint32_t peer) const {
  const auto refused = [&](std::string_view why) {
    return Status(StatusCode::unsupported, fmt::format("rank {} {}", peer, why))
        .with_peer(static_cast<int>(peer));
  };
  if (peer >= addresses_.size() || peer == rank_) return refused("is no other rank of this world");
  if (addresses_[peer].empty()) return refused("does not share memory");
  if (is_here_[peer]) return {};
  return refused("is on another host, in another container, or of another user");
}

/// Ranks that read our board may have sent something, and wait to be told of ends, though we have
/// opened no channel to them yet.
void ShmTransport::meet_readers() noexcept {
  order_all();
  const std::uint32_t readers = board_.header().readers.load(std::memory_order_acquire);
  if (readers == readers_seen_) return;
  readers_seen_ = readers;
  for (std::uint32_t rank = 0; rank < is_here_.size(); ++rank) {
    if (!is_here_[rank] || peers_[rank] != nullptr || board_.pair(rank).has_reader == 0) continue;
    static_cast<void>(described([&] { return reach(rank); }));
  }
}

Result<Peer*> ShmTransport::reach(std::uint32_t rank) {
  if (peers_[rank] != nullptr) return peers_[rank].get();
  const auto address = Address::parse(addresses_[rank]);
  if (!address.ok()) return address.status();
  auto reached = Peer::reach(
      *address, {.rank = rank, .reader = rank_, .size = size_, .epoch = epoch_}, board_.pair(rank));
  if (!reached.ok()) return reached.status();
  auto peer = std::make_unique<Peer>(*std::move(reached));
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = rank}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer->process(), &event) != 0) {
    return Status(StatusCode::system_error, "can't watch a process").with_system_error(errno);
  }
  active_.push_back(peer.get());
  peers_[rank] = std::move(peer);
  static_cast<void>(read(*peers_[rank]));  // what it sent comes before what it has closed
  return peers_[rank].get();
}

Result<ChannelId> ShmTransport::open(std::uint32_t peer, std::uint64_t lane) {
  return described([&] { return open_channel(peer, lane); });
}

Result<ChannelId> ShmTransport::open_channel(std::uint32_t peer, std::uint64_t lane) {
  if (Status status = can_reach(peer); !status.ok()) return status;
  const bool is_over = closed_.contains(lane);
  Channel* found = find(peer, lane);
  const bool was_open = !is_over && left_[peer].contains(lane);
  if (was_open || (found != nullptr && found->is_open)) {
    return Status(StatusCode::already_exists,
                  fmt::format("lane {} to rank {} is open already", lane, peer))
        .with_peer(static_cast<int>(peer));
  }
  if (channels_.is_full()) {
    return Status(StatusCode::limit_exceeded,
                  fmt::format("{} channels are open", channels_.size()));
  }
  // First, all that may throw.
  const std::size_t channels = channels_.size() + 1;
  channels_.make_room();
  for (auto* const list : {&blocked_, &retried_, &closing_}) tcp::make_room_in(*list, channels);
  tcp::make_room_in(free_numbers_, channels);
  left_[peer].make_room();
  closed_.make_room();
  const auto reached = described([&] { return reach(peer); });
  if (found == nullptr) found = find(peer, lane);  // reaching the peer may have found it
  Channel& channel = found != nullptr ? *found : make_channel(peer, lane);
  const Board::Slot reading = board_.take(sizeof(Reading));
  new (reading.data) Reading();
  channel.reading = reading;
  if (free_numbers_.empty()) {
    channel.number = numbers_++;
  } else {
    channel.number = free_numbers_.back();
    free_numbers_.pop_back();
  }
  channel.id = channels_.next();
  channel.is_open = true;
  channels_.add(&channel);
  if (is_over) {
    channel.failure = described([&] {
      return Status(StatusCode::aborted, fmt::format("lane {} was closed", lane))
          .with_peer(static_cast<int>(peer));
    });
    forget_incoming(channel);
  } else if (!reached.ok()) {
    fail(channel, reached.status(), false);
  } else if (const auto reason = (*reached)->their_closed.find(lane)) {
    end(channel, described([&] { return closed_by_peer(peer, *reason); }));
  } else if (!(*reached)->lost.ok()) {
    end(channel, (*reached)->lost);
  }
  // As may have been known before it was opened.
  if (!channel.is_over() && !channel.end.ok() && channel.arrived.empty()) {
    fail(channel, channel.end, false);
  }
  ring();
  return channel.id;
}

Channel& ShmTransport::make_channel(std::uint32_t peer, std::uint64_t lane) {
  auto made = std::make_unique<Channel>();
  made->peer = peer;
  made->lane = lane;
  return *by_lane_.insert_or_assign({lane, peer}, std::move(made)).first->second;
}

Channel* ShmTransport::find(std::uint32_t peer, std::uint64_t lane) noexcept {
  const auto found = by_lane_.find({lane, peer});
  return found == by_lane_.end() ? nullptr : found->second.get();
}

template <class Work>
void ShmTransport::guarded(Channel& channel, const Work& work) noexcept {
  try {
    work();
  } catch (...) {
    if (!channel.is_over()) fail(channel, status_of_exception(), true);
  }
}

// --- ops ---

std::size_t ShmTransport::post(std::span<const TransportOp> ops) noexcept {
  std::size_t count = 0;
  for (; count < ops.size() && outstanding_ < limits::transport_ops_max; ++count) {
    try {
      done_.reserve(outstanding_ + 1);
    } catch (const std::bad_alloc&) {
      // The op learns of it once there is memory for its completion.
      Channel* const channel = channels_.find(ops[count].channel);
      if (channel != nullptr && !channel->is_over()) {
        fail(*channel, Status::out_of_memory(), true);
      }
      break;
    }
    ++outstanding_;
    take_op(ops[count]);
  }
  ring();
  return count;
}

void ShmTransport::take_op(const TransportOp& op) noexcept {
  Channel* const found = channels_.find(op.channel);
  if (found == nullptr) {
    return complete(op, described([&] {
                      const bool is_over = channels_.has_place_of(op.channel);
                      return Status(is_over ? StatusCode::aborted : StatusCode::invalid_argument,
                                    fmt::format("there is no channel {}{}", op.channel,
                                                is_over ? " any more" : ""));
                    }));
  }
  Channel& channel = *found;
  if (channel.is_over()) {
    complete(op, channel.failure);
    return release_farewell(channel);
  }
  const bool is_send = op.kind == TransportOp::Kind::send;
  if (is_send && !channel.end.ok()) return complete(op, channel.end);
  try {
    (is_send ? channel.sends : channel.receives).push(op);
  } catch (const std::bad_alloc&) {
    fail(channel, Status::out_of_memory(), true);
    complete(op, channel.failure);
    return release_farewell(channel);
  }
  guarded(channel, [&] { is_send ? send(channel) : deliver(channel); });
}

void ShmTransport::give_back(const std::byte* lent) noexcept {
  const auto loan = std::ranges::find(loans_, lent, &Loan::data);
  if (loan == loans_.end()) return;
  Peer& peer = *peers_[loan->peer];
  Incoming& incoming = peer.incoming[loan->number];
  incoming.lent[loan->note] = 0;
  *loan = loans_.back();
  loans_.pop_back();
  while (!incoming.lent.empty() && incoming.lent.front() == 0) {
    incoming.lent.pop();
    ++incoming.done;
  }
  tell_done(peer, incoming);
  ring();
}

std::size_t ShmTransport::poll(std::span<TransportCompletion> completions) noexcept {
  const bool looks = has_slept_ || ++polls_ % polls_between_looks == 0;
  if (has_slept_) {
    has_slept_ = false;
    board_.header().is_asleep.store(0, std::memory_order_relaxed);
    std::array<char, 64> rings;
    while (::read(bell_.get(), rings.data(), rings.size()) == static_cast<ssize_t>(rings.size())) {
    }
  }
  for (std::size_t i = 0; i < active_.size(); ++i) {
    Peer& peer = *active_[i];
    if (!read(peer)) --i;  // it is not active any more
  }
  if (looks) look_for_ends();
  if (closing_.size() >= bury_at_) bury();
  if (!blocked_.empty()) retry_blocked();
  ring();
  std::size_t count = 0;
  while (!done_.empty() && count < completions.size()) completions[count++] = done_.pop();
  outstanding_ -= count;
  return count;
}

bool ShmTransport::prepare_to_sleep() noexcept {
  look_for_ends();
  has_slept_ = true;
  board_.header().is_asleep.store(1, std::memory_order_relaxed);
  order_all();
  if (!blocked_.empty()) retry_blocked();
  ring();
  const bool has_news = std::ranges::any_of(active_, [](const Peer* peer) {
    const Header& header = peer->header();
    return peer->front() != nullptr || header.has_left.load(std::memory_order_relaxed) != 0 ||
           header.closed_count.load(std::memory_order_relaxed) != peer->closed_seen;
  });
  return done_.empty() && !has_news;
}

// --- what goes ---

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
    const auto part =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes - channel.sent, part_bytes_max));
    const bool is_inline = bytes <= inline_bytes_max;
    const std::size_t beside = is_inline ? 0 : part;
    if (!has_room(channel, beside) || !announce(peer, channel)) return block(channel);
    Note* const note = peer.room();
    if (note == nullptr) return block(channel);
    channel.on_the_way.reserve(channel.on_the_way.size() + 1);
    const Board::Slot slot = is_inline ? Board::Slot() : board_.take(part);
    copy_from(op, channel.sent, is_inline ? note->data.data() : slot.data, part);
    channel.sent += part;
    note->kind = Note::Kind::part;
    note->is_last = channel.sent == bytes;
    note->is_inline = is_inline;
    note->channel = channel.number;
    note->bytes = static_cast<std::uint32_t>(part);
    note->tag = op.tag;
    if (!is_inline) note->offset = slot.offset;
    static_cast<void>(peer.publish(*note));
    mark(peer);
    channel.on_the_way.push({.slot = slot, .bytes = static_cast<std::uint32_t>(beside)});
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

// --- what comes ---

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
  Arrived part = {.bytes = note.bytes, .is_last = note.is_last, .tag = note.tag};
  if (note.is_inline) {
    part.bytes = std::min<std::uint32_t>(part.bytes, inline_bytes_max);
    part.copy = note.data;
  } else {
    part.data = peer.at(note.offset, note.bytes);
    if (part.data == nullptr) throw std::bad_alloc();
  }
  channel.arrived.push(part);
  guarded(channel, [&] { deliver(channel); });
}

void ShmTransport::take_open(Peer& peer, const Heard& note) {
  if (note.channel >= tcp::ChannelTable<Channel*>::places_max) return;
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
    if (part.bytes > op.bytes() - channel.received) {
      const std::uint64_t tag = part.tag;
      return fail(channel,
                  Status(StatusCode::mismatch,
                         fmt::format("rank {} sent a message of more than {} bytes, which its "
                                     "receive has room for",
                                     channel.peer, op.bytes())),
                  true, tag);
    }
    const bool is_small = part.data == nullptr;
    const std::byte* const data = is_small ? part.copy.data() : part.data;
    const bool lends = op.may_lend && !is_small && part.is_last && channel.received == 0;
    if (lends) {
      from.lent.reserve(notes_on_the_way_max + 1);
      loans_.push_back({.data = data,
                        .peer = channel.peer,
                        .number = channel.their_number,
                        .note = from.lent.end()});
      from.lent.push(1);
    } else {
      copy_to(op, channel.received, data, part.bytes);
    }
    channel.received += part.bytes;
    if (part.is_last) {
      done_.push({.token = op.token,
                  .bytes = channel.received,
                  .tag = part.tag,
                  .lent = lends ? data : nullptr});
      channel.receives.pop();
      channel.received = 0;
    }
    channel.arrived.pop();
    if (!lends) be_done(peer, from, is_small && channel.is_known);
  }
  if (channel.arrived.empty() && !channel.end.ok()) fail(channel, channel.end, false);
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
    if (!read(peer)) continue;
    lose(peer, described([&] {
           return peer_lost(peer.rank(), "is lost: its process has ended")
               .with_hint("see why its process has ended");
         }));
  }
  bury();
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
  if (channel.is_open && channel.arrived.empty()) fail(channel, why, false);
}

// --- ends ---

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

/// The peer is told only once an op or a close() here has been: else what the peer does about it
/// may come back as the failure of other channels, before anybody here knows the cause.
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
  for (tcp::LaneSet& left : left_) {
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
    board_.give_back(channel.reading);
    free_numbers_.push_back(channel.number);
    channels_.remove(channel.id);
    by_lane_.erase({channel.lane, channel.peer});
    return true;
  });
  bury_at_ = std::max(buried_at_once, 2 * closing_.size());
}

}  // namespace hocket::shm
