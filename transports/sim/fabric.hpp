// The state of a simulated world, and all that happens to it: what transports ask for, what comes
// with time, and what breaks.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "hocket/transport.hpp"

#include "base/rng.hpp"
#include "transports/sim/channel.hpp"
#include "transports/sim/loans.hpp"
#include "transports/sim/profile.hpp"
#include "transports/sim/timeline.hpp"
#include "transports/sim/trace.hpp"

namespace hocket::simulated {

class Fabric {
 public:
  Fabric(std::uint32_t size, std::uint64_t seed, const SimProfile& profile);

  // What a rank's transport asks for; see Transport.
  void enter(std::uint32_t rank, std::uint64_t epoch);
  [[nodiscard]] Status connect(std::uint32_t rank, std::span<const std::string> addresses);
  [[nodiscard]] Status can_reach(std::uint32_t rank, std::uint32_t peer) const;
  [[nodiscard]] Result<ChannelId> open(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane);
  [[nodiscard]] std::size_t post(std::uint32_t rank, std::span<const TransportOp> ops);
  [[nodiscard]] std::size_t poll(std::uint32_t rank, std::span<TransportCompletion> completions);
  void give_back(std::uint32_t rank, const std::byte* lent);
  [[nodiscard]] bool has_nothing_ready(std::uint32_t rank) const noexcept;
  void close(std::uint32_t rank, ChannelId channel, const Status& reason);
  void close_lanes(std::uint32_t rank, std::uint64_t first, std::uint64_t last,
                   const Status& reason);
  void leave(std::uint32_t rank);

  // What a test does to the world; see SimWorld.
  [[nodiscard]] bool step();
  void alarm(Instant at);
  void kill(std::uint32_t rank);
  void cut(std::uint32_t rank, std::uint32_t peer);
  void stall(std::uint32_t rank, Duration duration);

  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(members_.size());
  }
  [[nodiscard]] const Timeline& timeline() const noexcept { return timeline_; }
  [[nodiscard]] const Trace& trace() const noexcept { return trace_; }
  [[nodiscard]] const std::string& violation() const noexcept { return violation_; }
  [[nodiscard]] bool is_alive(std::uint32_t rank) const noexcept { return members_[rank].is_alive; }
  [[nodiscard]] std::size_t loans(std::uint32_t rank) const noexcept {
    return members_[rank].loans.count();
  }

 private:
  using Kind = TransportOp::Kind;

  enum class Loss : std::uint8_t { none, died, left, closed, cut, stranger };

  struct Ready {
    End* end = nullptr;
    Kind kind = Kind::send;
  };

  /// Behind each pause all goes well once, so that none lasts for ever.
  struct Pause {
    Instant until = {};
    bool was_there = false;
  };

  struct ClosedLanes {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    Status reason = {};
  };

  struct Member {
    bool is_alive = true;  // neither dead nor gone
    bool has_entered = false;
    std::uint64_t epoch = 0;
    bool is_connected = false;
    std::vector<bool> has_address = {};
    std::vector<Loss> lost = {};  // by peer, what this rank has heard
    std::vector<End*> ends = {};  // by channel
    std::vector<ClosedLanes> closed = {};
    std::vector<Ready> ready = {};
    std::uint64_t in_flight = 0;
    std::uint64_t posted = 0;
    std::uint64_t polled = 0;
    Pause refusing = {};
    Pause holding = {};
    Instant stalls_until = {};
    Loans loans = {};
  };

  /// What is to break, and when.
  struct Fate {
    enum class When : std::uint8_t { post, poll, time };

    When when = When::post;
    std::uint32_t rank = 0;
    std::uint32_t peer = 0;      // the other end of the link that breaks; the same: the rank dies
    std::uint64_t progress = 0;  // ops that were taken before, or completions
  };

  // fabric.cpp
  [[nodiscard]] Instant now() const noexcept { return timeline_.now(); }
  [[nodiscard]] Duration draw(const SimSpan& span) noexcept;
  [[nodiscard]] bool begins(Pause& pause, double chance);
  [[nodiscard]] End& end_of(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane);
  [[nodiscard]] Status bad_address(std::uint32_t rank,
                                   std::span<const std::string> addresses) const;
  [[nodiscard]] std::size_t room(std::uint32_t rank, std::size_t ops);
  [[nodiscard]] bool is_wrong(std::uint32_t rank, const TransportOp& op);
  void take(End& end, const TransportOp& op);
  [[nodiscard]] std::size_t poll_some(std::uint32_t rank, std::size_t room);
  [[nodiscard]] TransportCompletion pop_ready(std::uint32_t rank, std::size_t index);
  void note(Happening what, const End& end, std::uint64_t number = 0, std::uint64_t bytes = 0,
            bool is_send = false);
  void note(Happening what, std::uint32_t rank, std::uint32_t peer = 0, std::uint64_t number = 0,
            std::uint64_t bytes = 0);
  void violate(std::uint32_t rank, const std::string& what);

  // messages.cpp
  void take_send(End& end, Send send);
  void take_receive(End& end, Receive receive);
  void send_off(End& end, std::uint64_t number, Message message);
  void match(End& end);
  void transfer(End& end, std::uint64_t number);
  void on_buffer(End& end, std::uint64_t number);
  void on_arrive(End& end, std::uint64_t number, std::uint64_t bytes);
  void finish_receive(End& end, std::uint64_t number, std::uint64_t bytes);
  void check_print(const End& end, Kind kind, const BorrowedOp& op, std::uint64_t number);
  void release(End& end);
  void release_one(End& end, Kind kind, Finished finished);

  // faults.cpp
  void draw_fates();
  void meet(const Fate& fate);
  [[nodiscard]] bool meets_fate(std::uint32_t rank, Fate::When when, std::uint64_t progress);
  void depart(std::uint32_t rank, Loss loss);
  void tell_loss(std::uint32_t rank, std::uint32_t peer, Loss loss);
  void on_peer_lost(std::uint32_t rank, std::uint32_t peer, Loss loss);
  /// `reason`: of a channel that the other end closed (pack_reason).
  void lose(End& end, Loss loss, std::uint64_t reason = 0);
  void fail_sends(End& end, const Status& why);
  void fail_receives(End& end, const Status& why);
  void shut(End& end, const Status& reason);
  void shut_if_closed(End& end);
  [[nodiscard]] static Status loss_status(const End& end, Loss loss, std::uint64_t reason);
  [[nodiscard]] bool is_stranger(const End& end) const;
  [[nodiscard]] bool is_cut(const End& end) const;

  SimProfile profile_;
  SeededRandom random_;
  Timeline timeline_;
  Trace trace_;
  std::string violation_;
  std::vector<Member> members_;
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::unique_ptr<End>> ends_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cuts_;
  std::vector<Fate> fates_;
};

}  // namespace hocket::simulated
