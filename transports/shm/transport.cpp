#include "transports/shm/transport.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <new>
#include <thread>

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/exception.hpp"
#include "base/limits.hpp"
#include "base/rng.hpp"

namespace hocket::shm {
namespace {

/// A rank that polls without sleeping looks this seldom for processes that have ended, and channels
/// that are over.
constexpr unsigned polls_between_looks = 256;

/// So long a rank waits for others to open its board, which they do when they connect.
constexpr Duration patience = std::chrono::seconds(2);
constexpr Duration between_looks = std::chrono::microseconds(50);

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
  held_.resize(size_);
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
    pids_.resize(addresses_.size());
    for (std::uint32_t rank = 0; rank < addresses_.size(); ++rank) {
      const auto address = Address::parse(addresses_[rank]);
      if (rank == rank_ || !address.ok() || address->domain != address_.domain) continue;
      pids_[rank] = address->pid;
      auto board = Peer::hold(*address, expected(rank));
      if (board.ok()) held_[rank] = *std::move(board);  // else reach() tries it again, and says why
    }
    return Status();
  });
}

/// From then on nothing is lost that we send.
void ShmTransport::await_peers() noexcept {
  const Deadline deadline = Deadline::after(monotonic_clock(), patience);
  for (std::uint32_t rank = 0; rank < pids_.size(); ++rank) {
    while (pids_[rank] != 0 && board_.hold(rank) == Hold::nothing) {
      const bool has_ended = ::kill(static_cast<pid_t>(pids_[rank]), 0) != 0 && errno == ESRCH;
      if (has_ended || deadline.passed(monotonic_clock().now())) break;
      std::this_thread::sleep_for(between_looks);
    }
  }
}

Status ShmTransport::can_reach(std::uint32_t peer) const {
  const auto refused = [&](std::string_view why) {
    return Status(StatusCode::unsupported, fmt::format("rank {} {}", peer, why))
        .with_peer(static_cast<int>(peer));
  };
  if (peer >= addresses_.size() || peer == rank_) return refused("is no other rank of this world");
  if (addresses_[peer].empty()) return refused("does not share memory");
  if (pids_[peer] != 0) return {};
  return refused("is on another host, in another container, or of another user");
}

/// Ranks that read our board may have sent something, and wait to be told of ends, though we have
/// opened no channel to them yet.
void ShmTransport::meet_readers() noexcept {
  order_all();
  const std::uint32_t readers = board_.header().readers.load(std::memory_order_acquire);
  if (readers == readers_seen_) return;
  bool has_all = true;
  for (std::uint32_t rank = 0; rank < pids_.size(); ++rank) {
    if (pids_[rank] == 0 || peers_[rank] != nullptr || board_.hold(rank) != Hold::mapping) {
      continue;
    }
    has_all = described([&] { return reach(rank); }).ok() && has_all;
  }
  if (has_all) readers_seen_ = readers;  // else they are tried again
}

Result<Peer*> ShmTransport::reach(std::uint32_t rank) {
  if (peers_[rank] != nullptr) return peers_[rank].get();
  const auto address = Address::parse(addresses_[rank]);
  if (!address.ok()) return address.status();
  if (!held_[rank]) {
    auto board = Peer::hold(*address, expected(rank));
    if (!board.ok()) return board.status();
    held_[rank] = *std::move(board);
  }
  auto reached = Peer::reach(held_[rank], *address, expected(rank), board_.pair(rank));
  if (!reached.ok()) return reached.status();
  auto made = std::make_unique<Peer>(*std::move(reached));
  Peer& peer = *made;
  const bool has_ended = peer.process() < 0;
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = rank}};
  if (!has_ended && ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer.process(), &event) != 0) {
    return Status(StatusCode::system_error, "can't watch a process").with_system_error(errno);
  }
  active_.push_back(&peer);
  peers_[rank] = std::move(made);
  // What it sent comes before what it has closed, and before its end.
  if (read(peer) && has_ended) lose_process(peer);
  return &peer;
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
  for (auto* const list : {&blocked_, &retried_, &closing_}) common::make_room_in(*list, channels);
  common::make_room_in(free_numbers_, channels);
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
  has_moved_ = false;
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
  has_moved_ = false;
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
  return done_.empty() && !has_news && !has_moved_;
}

}  // namespace hocket::shm
