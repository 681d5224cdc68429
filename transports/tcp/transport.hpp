// Channels over TCP, each a connection of its own (or HOCKET_TCP_STREAMS of them): so the kernel
// holds back the sender of a channel whose receiver is slow, and no channel waits for another.
//
// Where memory runs out, the channel concerned fails. To fail one, and to say so of all its ops,
// takes no memory: there is room in the lists for all channels, streams and ops that there are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "transports/common/channel_table.hpp"
#include "transports/common/links.hpp"
#include "transports/common/poller.hpp"
#include "transports/tcp/bundle.hpp"
#include "transports/tcp/queue.hpp"
#include "transports/tcp/stream.hpp"

namespace hocket::tcp {

class TcpTransport final : public Transport {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Transport>> make(const TransportOptions& options,
                                                               std::uint32_t streams,
                                                               std::string_view interfaces = {});
  ~TcpTransport() override;

  [[nodiscard]] const TransportCaps& caps() const noexcept override { return caps_; }
  [[nodiscard]] std::string address() const override { return links_.address(); }
  [[nodiscard]] Status connect(std::span<const std::string> addresses) override {
    return links_.connect(addresses);
  }
  [[nodiscard]] Status can_reach(std::uint32_t peer) const override {
    return links_.can_reach(peer);
  }
  [[nodiscard]] Result<ChannelId> open(std::uint32_t peer, std::uint64_t lane) override;
  [[nodiscard]] std::size_t post(std::span<const TransportOp> ops) noexcept override;
  [[nodiscard]] std::size_t poll(std::span<TransportCompletion> completions) noexcept override;
  [[nodiscard]] bool has_moved() const noexcept override { return has_moved_; }
  void give_back(const std::byte*) noexcept override {}  // nothing is ever lent
  [[nodiscard]] int descriptor() const noexcept override { return poller_.descriptor(); }
  [[nodiscard]] bool prepare_to_sleep() noexcept override;
  void close(ChannelId channel, const Status& reason) noexcept override;
  void close_lanes(std::uint64_t first, std::uint64_t last, const Status& reason) noexcept override;

 private:
  struct Channel {
    ChannelId id = 0;
    std::uint64_t lane = 0;
    Queues queues = {};
    std::vector<std::unique_ptr<Stream>> streams = {};
    std::unique_ptr<Bundle> bundle = {};  // in place of streams, where there are several ways
    bool has_dialled = false;
    bool is_finishing = false;  // in the list of those with ops that are over
    bool is_closed = false;     // by us: in the list of those that nobody needs any more
    std::size_t ended = 0;      // streams of which the other end is gone
    Status suspicion = {};      // why the other end seems gone, while it is being asked
    Status failure = {};        // of every op from now on

    [[nodiscard]] bool is_over() const noexcept { return !failure.ok(); }
  };

  [[nodiscard]] static common::Ring<Slot>& queue_of(Channel& channel,
                                                    const TransportOp& op) noexcept {
    return op.kind == TransportOp::Kind::send ? channel.queues.sends : channel.queues.receives;
  }

  explicit TcpTransport(Duration host_timeout) : links_(poller_), host_timeout_(host_timeout) {}

  [[nodiscard]] Channel& channel(ChannelId id) noexcept { return channels_.at(id); }
  /// Null if there is none.
  [[nodiscard]] Channel* find(ChannelId id) noexcept { return channels_.find(id); }
  [[nodiscard]] Status no_channel(ChannelId id) const;
  [[nodiscard]] Channel& make_channel(std::uint32_t peer, std::uint64_t lane);
  [[nodiscard]] Status claim(Channel& channel);
  void make_room(std::size_t streams);
  /// Destroys channels that were closed, once no list has them or parts of them.
  void bury() noexcept;
  [[nodiscard]] static bool is_listed(const Channel& channel) noexcept;

  /// Calls work(). What it throws is the failure of the channel.
  template <class Work>
  void guarded(ChannelId id, const Work& work) noexcept;

  [[nodiscard]] bool has_room_for(const TransportOp& op) noexcept;
  void take_op(const TransportOp& op) noexcept;
  void enqueue(Channel& channel, const TransportOp& op);
  void begin(Channel& channel);
  void send_what_is_new() noexcept;
  void send(Stream& stream);

  /// Asks the system what has happened; true when there may be more to ask for.
  bool look() noexcept;
  [[nodiscard]] Status adopt(Channel& channel, std::uint32_t number, link::Link link);
  [[nodiscard]] bool should_look() noexcept;
  void take_news() noexcept;
  void take(common::LinkNews& news, ChannelId id);
  void take_turns() noexcept;
  void take_turn(Stream& stream);
  [[nodiscard]] Status move(Stream& stream);
  /// Puts it into the lists in which it belongs by now.
  void place(Stream& stream) noexcept;

  void place(Bundle& bundle) noexcept;
  void take_turns_of_bundles() noexcept;
  void take_turn(Bundle& bundle);
  void tick() noexcept;
  [[nodiscard]] Deadline next_tick() const noexcept;
  void leave(Channel& channel, std::optional<std::uint64_t> reason) noexcept;

  /// Finds the hosts that do not answer, when that is due again.
  void check_answers(Instant now) noexcept;
  void check_answers(Channel& channel, Instant now);

  void finish(ChannelId id) noexcept;
  void judge_end(ChannelId id) noexcept;
  void lose(ChannelId id, const Status& why) noexcept;
  void fail(ChannelId id, Status why, bool has_farewell) noexcept;
  [[nodiscard]] std::size_t emit(std::span<TransportCompletion> completions) noexcept;

  TransportCaps caps_ = {.small_bytes_max = 1024, .segment_bytes = 256 << 10};
  common::Poller poller_ = {};
  common::Links links_;
  Scratch scratch_ = {};
  common::ChannelTable<std::unique_ptr<Channel>> channels_ = {};
  std::vector<ChannelId> closed_ = {};
  std::map<std::pair<std::uint64_t, std::uint32_t>, ChannelId> by_lane_ = {};  // by lane and peer
  std::size_t streams_ = 0;                                                    // of all channels
  std::vector<common::LinkNews> news_ = {};

  // Of streams.
  std::vector<Stream*> turns_ = {};  // those with something to do
  std::vector<Stream*> now_ = {};    // of them, those whose turn it is
  std::vector<Stream*> waiting_ = {};
  std::size_t blocked_ = 0;
  unsigned polls_ = 0;

  // Of channels over several connections.
  bool has_bundles_ = false;
  bool has_moved_ = false;         // in this poll
  std::vector<Bundle*> due_ = {};  // those with something to do
  std::vector<Bundle*> due_now_ = {};
  Deadline tick_at_ = Deadline::never();

  // Hosts that do not answer.
  const Duration host_timeout_;
  Deadline check_at_ = Deadline::never();
  unsigned looks_ = 0;

  common::Ring<ChannelId> finishing_ = {};
  common::Ring<TransportCompletion> failures_ = {};
  std::uint64_t outstanding_ = 0;
};

}  // namespace hocket::tcp
