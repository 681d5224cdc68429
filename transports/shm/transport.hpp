// Channels between ranks of one host, through memory that both have mapped.
//
// Each rank writes on a board of its own (board.hpp), and reads the others'. A small message lies
// in its note; a larger one in a slot beside, which its reader copies from, or lends on. A channel
// has limited room for what is not received, so that no channel waits for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/exception.hpp"
#include "base/fd.hpp"
#include "transports/common/channel_table.hpp"
#include "transports/common/lane_set.hpp"
#include "transports/common/ring.hpp"
#include "transports/shm/address.hpp"
#include "transports/shm/board.hpp"
#include "transports/shm/channel.hpp"
#include "transports/shm/peer.hpp"

namespace hocket::shm {

class ShmTransport final : public Transport {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Transport>> make(const TransportOptions& options);
  ~ShmTransport() override;

  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return address_.to_string(); }
  [[nodiscard]] std::string memory_domain() const override { return address_.domain; }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override;
  void await_peers() noexcept override;
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override;
  [[nodiscard]] Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override;
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override;
  [[nodiscard]] bool has_moved() const noexcept override { return has_moved_; }
  void give_back(const std::byte* lent) noexcept override;
  [[nodiscard]] int descriptor() const noexcept override { return epoll_.get(); }
  [[nodiscard]] bool prepare_to_sleep() noexcept override;
  void close(ChannelId channel, const Status& reason) noexcept override;
  void close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) noexcept override;

 private:
  /// In the epoll, beside the ranks of processes.
  static constexpr std::uint64_t bell_event = UINT64_MAX;

  struct Loan {
    const std::byte* data = nullptr;
    std::uint32_t peer = 0;
    std::uint32_t number = 0;  // the peer's, of the channel
    std::uint64_t note = 0;    // in Incoming::lent
  };

  ShmTransport(const TransportOptions& options, Board board);
  [[nodiscard]] Status set_up();
  /// What throws is the failure of the channel.
  template <class Work>
  void guarded(Channel& channel, const Work& work) noexcept {
    try {
      work();
    } catch (...) {
      if (!channel.is_over()) fail(channel, status_of_exception(), true);
    }
  }

  [[nodiscard]] Peer::Expected expected(std::uint32_t rank) const noexcept {
    return {.rank = rank, .reader = rank_, .size = size_, .epoch = epoch_};
  }
  [[nodiscard]] Result<Peer*> reach(std::uint32_t rank);
  void meet_readers() noexcept;
  [[nodiscard]] Result<ChannelId> open_channel(std::uint32_t peer, std::uint64_t lane);
  [[nodiscard]] Channel& make_channel(std::uint32_t peer, std::uint64_t lane);
  [[nodiscard]] Channel* find(std::uint32_t peer, std::uint64_t lane) noexcept;
  void take_op(const TransportOp& op) noexcept;

  // What goes.
  void send(Channel& channel);
  [[nodiscard]] bool has_room(Channel& channel, std::size_t bytes) noexcept;
  void reclaim(Channel& channel) noexcept;
  [[nodiscard]] bool announce(Peer& peer, Channel& channel) noexcept;
  void say_farewell(Channel& channel) noexcept;
  void retry_blocked() noexcept;
  void block(Channel& channel) noexcept;
  void mark(Peer& peer) noexcept;
  void ring() noexcept;

  // What comes.
  bool read(Peer& peer) noexcept;
  void take(Peer& peer, const Heard& note);
  void take_open(Peer& peer, const Heard& note);
  [[nodiscard]] bool starve(Peer& peer, const Heard& note, const Status& why) noexcept;
  void deliver(Channel& channel);
  void fail_for_nonsense(Channel& channel) noexcept;
  void be_done(Peer& peer, Incoming& from, bool may_wait = false) noexcept;
  void tell_done(Peer& peer, Incoming& from) noexcept;
  void tell_read(Peer& peer) noexcept;
  void take_closed(Peer& peer, std::uint32_t count) noexcept;
  void look_for_ends() noexcept;
  void lose(Peer& peer, const Status& why) noexcept;
  void lose_process(Peer& peer) noexcept;
  void end(Channel& channel, const Status& why) noexcept;

  void fail(Channel& channel, Status why, bool has_farewell, std::uint64_t tag = 0) noexcept;
  void release_farewell(Channel& channel) noexcept;
  void forget_incoming(Channel& channel) noexcept;
  void bury() noexcept;
  void complete(const TransportOp& op, Status status) noexcept {
    done_.push({.token = op.token, .status = std::move(status)});
  }

  const std::uint32_t rank_;
  const std::uint32_t size_;
  const std::uint64_t epoch_;
  TransportCaps caps_ = {.small_bytes_max = 1024, .segment_bytes = 128 << 10};
  Board board_;
  Address address_;
  Fd bell_;       // to be rung
  Fd bell_pull_;  // the other end, so that it stays open
  Fd epoll_;
  std::vector<std::string> addresses_ = {};
  std::vector<std::int64_t> pids_ = {};  // of ranks that share memory with this one; of others 0
  std::uint32_t readers_seen_ = 0;
  std::vector<Fd> held_ = {};                      // boards of ranks that are not reached yet
  std::vector<std::unique_ptr<Peer>> peers_ = {};  // by rank
  std::vector<Peer*> active_ = {};                 // those that may have something to say
  std::vector<Peer*> dirty_ = {};
  std::map<std::pair<std::uint64_t, std::uint32_t>, std::unique_ptr<Channel>> by_lane_ = {};
  common::ChannelTable<Channel*> channels_ = {};
  std::uint32_t numbers_ = 0;  // channel numbers that were handed out so far
  std::vector<std::uint32_t> free_numbers_ = {};
  std::vector<Channel*> blocked_ = {};  // waiting for room
  std::vector<Channel*> retried_ = {};
  std::vector<Channel*> closing_ = {};
  std::size_t bury_at_ = 0;  // so many of them
  std::vector<Loan> loans_ = {};
  common::LaneSet closed_ = {};             // ranges, by close_lanes()
  std::vector<common::LaneSet> left_ = {};  // single ones, by peer
  common::Ring<TransportCompletion> done_ = {};
  std::uint64_t outstanding_ = 0;
  unsigned polls_ = 0;
  bool has_slept_ = false;
  bool has_moved_ = false;
};

}  // namespace hocket::shm
