// How messages travel once there are queue pairs.
//
// A small message is sent at once, into a slot of the receiver's shared queue, as long as no more
// than Channel::window of its channel wait there for their receives. Of a large one only its length
// is sent; when it meets its receive, the receiver asks for it piece by piece, each to be written
// into a slot of its own, and so holds slots only for what is on its way. A message of one piece is
// lent from there, others are copied.
//
// Memory of the user that is registered needs no slot: pieces are written from it, and to it. An
// op of which a piece may still be on its way then ends when that is over: the other end answers
// each grant, by the piece or by word that it does not come, and if it does not answer in time, its
// queue pairs end. All other ops end at once, whatever the other end does.
//
// In memory of a device no slot has a part: messages from there are announced whatever their
// length, and all pieces go straight.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "transports/verbs/channel.hpp"
#include "transports/verbs/channels.hpp"
#include "transports/verbs/grants.hpp"
#include "transports/verbs/rail.hpp"
#include "transports/verbs/regions.hpp"
#include "transports/verbs/slots.hpp"
#include "transports/verbs/wire.hpp"

namespace hocket::verbs {

/// Of a slot for small messages; they have this, but for their headers.
inline constexpr std::size_t small_slot_bytes = 4096;

class Traffic {
 public:
  using Rails = std::vector<std::unique_ptr<Rail>>;

  /// Borrows the rails.
  explicit Traffic(Rails& rails);
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;
  ~Traffic();

  /// Registers what it needs at first.
  [[nodiscard]] Status open();

  // --- what the user of the transport wants ---

  /// Fails with already_exists.
  [[nodiscard]] Result<ChannelId> open(Peer& peer, std::uint64_t lane);
  /// Null when there is none.
  [[nodiscard]] Channel* find(ChannelId id) const noexcept { return channels_.find(id); }
  void take(Channel& channel, const TransportOp& op);
  void reject(const TransportOp& op, Status why);
  void give_back(const std::byte* lent) noexcept;
  void close(Channel& channel, const Status& reason);
  /// Those that there are, whoever opened them, and those that are still to come.
  void close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) {
    channels_.close_lanes(first, last, pack_reason(reason));
  }
  /// The same with one peer, which is told; behind the other.
  void close_lanes(Peer& peer, std::uint64_t first, std::uint64_t last, const Status& reason);
  [[nodiscard]] Regions& regions() noexcept { return *regions_; }

  // --- what comes ---

  /// A receive from the shared queue of a rail, which goes back there when it is of no use any
  /// more. A failure is the peer's.
  [[nodiscard]] Status handle(Peer& peer, std::size_t rail, const ibv_wc& completion);
  /// Puts the receive of that id back into the shared queue.
  void free_receive(std::size_t rail, std::uint64_t id) noexcept;
  /// What a send has read is free.
  void release(const Hold& hold);
  /// Nothing comes from the peer any more, and its queue pairs are gone.
  void lose(Peer& peer, const Status& why);

  // --- what goes ---

  /// Sends what can be sent.
  void serve();
  /// The peer can be sent to from now on.
  void link(Peer& peer);
  /// The last word to a peer, whose completion says that all before it has arrived. False when
  /// there is no room for it now.
  [[nodiscard]] bool say_last(Peer& peer);
  /// To fail soon; to be asked for after each of the others.
  [[nodiscard]] std::vector<std::pair<Peer*, Status>> take_doomed() {
    return std::exchange(doomed_, {});
  }
  void doom(Peer& peer, Status why);
  [[nodiscard]] bool is_dooming() const noexcept { return !doomed_.empty(); }

  /// Dooms peers that keep ops from their ends.
  void expire(Instant now);
  /// When that may be necessary.
  [[nodiscard]] Deadline next() const noexcept;

  // --- ops that are over ---

  [[nodiscard]] std::size_t emit(std::span<TransportCompletion> completions) noexcept;
  [[nodiscard]] bool has_news() const noexcept { return !over_.empty(); }
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }

 private:
  /// A channel that withholds ops, and until when it may.
  struct Withheld {
    Channel* channel = nullptr;
    Deadline until = {};
  };
  enum class Sent : std::uint8_t { yes, no_room, broken };

  [[nodiscard]] Status take_message(Peer& peer, const Header& header, const std::byte* payload,
                                    bool& is_kept);
  [[nodiscard]] Status take_arrival(Channel& channel, const Header& header,
                                    const std::byte* payload, bool& is_kept);
  [[nodiscard]] Status take_grant(Channel& channel, const Header& header);
  [[nodiscard]] Status take_piece(Peer& peer, std::uint32_t number, std::uint32_t bytes);
  [[nodiscard]] Status take_drop(const Peer& peer, std::uint32_t number);
  void take_close(Channel& channel, const Header& header);
  [[nodiscard]] Status take_close_lanes(Peer& peer, const Header& header);
  void match(Channel& channel);
  /// False when the channel is broken by it, or will be when those before it are there.
  [[nodiscard]] bool meet(Channel& channel, std::uint64_t number);
  void end_arrival(Arrival& arrival) noexcept;
  void free_small(const std::byte* data) noexcept;
  void break_off(Channel& channel, Status why, std::uint64_t ends_at);
  [[nodiscard]] bool ask_next(Channel& channel);
  void tell_consumed(Channel& channel);
  [[nodiscard]] Header header_of(Channel& channel, Kind kind) noexcept;

  /// Something waits for this peer.
  void wake(Peer& peer);
  void note_ready(Channel& channel);
  void push_control(Peer& peer, const Header& header);
  [[nodiscard]] bool serve(Peer& peer);
  [[nodiscard]] bool serve_controls(Peer& peer);
  [[nodiscard]] bool serve_jobs(Peer& peer);
  [[nodiscard]] bool serve_channels(Peer& peer);
  [[nodiscard]] Sent start(Channel& channel);
  [[nodiscard]] Sent write(Peer& peer, const Job& job);
  /// Where a piece is sent from, in at most two parts.
  struct Source {
    Hold hold = {};
    std::array<ibv_sge, 2> parts = {};
    int count = 0;
  };
  [[nodiscard]] std::optional<Source> source_of(SendOp& op, const Header& grant);
  [[nodiscard]] Region* region_of_piece(const SendOp& op, const Header& grant) const noexcept;
  [[nodiscard]] Sent send(Peer& peer, const Header& header, const common::OpMemory& payload = {},
                          bool is_last = false);
  [[nodiscard]] Sent post(Peer& peer, std::size_t rail, ibv_send_wr& request, Hold hold,
                          bool is_last = false);

  void fail(Channel& channel, Status why, std::uint64_t ends_at);
  /// Completes what is over, in order.
  void finish(Channel& channel);
  /// Its memory is its user's again.
  void let_go(Region* device) noexcept;

  Rails& rails_;
  std::unique_ptr<Slots> small_in_ = {};   // all in the shared queue of the first rail, or in use
  std::unique_ptr<Slots> small_out_ = {};  // of messages that are too large to be inlined
  std::unique_ptr<Slots> pieces_in_ = {};
  std::unique_ptr<Slots> pieces_out_ = {};
  std::size_t held_ = 0;  // of small_in_: not in the queue
  std::unique_ptr<Regions> regions_ = {};
  std::unique_ptr<Grants> grants_ = {};

  Channels channels_ = {};
  common::Ring<Channel*> hungry_ = {};
  std::vector<Peer*> busy_ = {};
  std::vector<Withheld> withheld_ = {};
  std::vector<std::pair<Peer*, Status>> doomed_ = {};
  common::Ring<TransportCompletion> over_ = {};
  std::uint64_t outstanding_ = 0;
};

}  // namespace hocket::verbs
