// A world of transports in one thread, which checks of every op that it ends exactly once and in
// its turn; and memory for messages that notices who writes where he must not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "hocket/transport.hpp"

#include "conformance/transport_conformance.hpp"

namespace hocket::testing {

/// Memory for a message in two parts, with guards around each.
class Parcel {
 public:
  explicit Parcel(std::uint64_t bytes) : Parcel(bytes, bytes) {}
  /// The first part has `split` bytes.
  Parcel(std::uint64_t bytes, std::uint64_t split);

  [[nodiscard]] MemoryPart first() noexcept;
  [[nodiscard]] MemoryPart rest() noexcept;
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

  /// As the message of this number looks.
  void fill(std::uint64_t seed);
  void poison();
  /// Its first bytes look like that message, and nobody wrote around the parts.
  [[nodiscard]] bool holds(std::uint64_t seed, std::uint64_t bytes);
  [[nodiscard]] bool holds(std::uint64_t seed) { return holds(seed, bytes_); }
  [[nodiscard]] bool is_poisoned();
  [[nodiscard]] bool has_guards() const;

 private:
  std::uint64_t bytes_;
  std::uint64_t split_;
  std::vector<std::byte> memory_;
};

/// What became of an op that was posted.
struct Outcome {
  std::uint32_t rank = 0;
  TransportOp op = {};
  bool is_over = false;
  std::uint64_t bytes = 0;
  std::uint64_t tag = 0;
  Status status = {};
};

using Token = std::uint64_t;

class TransportWorld {
 public:
  /// All connected, unless `is_connected` is false.
  TransportWorld(const TransportSubject& subject, std::uint32_t size,
                 const TransportOptions& options = {}, bool is_connected = true);

  [[nodiscard]] Transport& at(std::uint32_t rank) { return *ranks_.at(rank).transport; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(ranks_.size()); }

  void connect(std::uint32_t rank);
  /// To be told to ranks that connect from now on.
  void set_address(std::uint32_t rank, std::string address) { addresses_.at(rank) = address; }
  /// The channel of this rank to that peer, opened when first asked for.
  ChannelId channel(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane);
  void close(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane, const Status& reason) {
    at(rank).close(channel(rank, peer, lane), reason);
  }

  /// The parcel must live until the op is over.
  Token send(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane, Parcel& parcel);
  Token receive(std::uint32_t rank, std::uint32_t peer, std::uint64_t lane, Parcel& parcel,
                bool may_lend = false);
  Token post(std::uint32_t rank, TransportOp op);

  /// Offers what was not accepted yet, and polls everybody once. True when anything happened.
  bool pump();
  /// Until the condition holds; fails the test when it takes too long.
  template <class Condition>
  void pump_until(const char* what, Condition condition, Duration patience = soon) {
    const Deadline deadline = Deadline::after(monotonic_clock(), patience);
    while (!condition()) {
      if (!pump()) net_->pass_time();
      if (deadline.passed(monotonic_clock().now())) FAIL("in vain: " << what << ": " << pending());
    }
  }
  void pump_rounds(int rounds);
  /// Until every op of the ranks that live is over.
  void finish(Duration patience = soon) {
    pump_until(
        "all ops over", [this] { return outstanding_ == 0; }, patience);
  }
  void finish(Token token, Duration patience = soon) {
    pump_until(
        "an op over", [&] { return outcome(token).is_over; }, patience);
  }

  [[nodiscard]] const Outcome& outcome(Token token) const { return outcomes_.at(token); }
  /// Waits for it, and requires that it went well, or as it should.
  void require_success(Token token);
  void require_failure(Token token, StatusCode code);
  [[nodiscard]] std::uint64_t outstanding() const noexcept { return outstanding_; }

  /// The rank's end of everything: its ops are forgotten.
  void end(std::uint32_t rank);

  void set_poll_batch(std::size_t count) { poll_batch_ = count; }
  void set_post_batch(std::size_t count) { post_batch_ = count; }

 private:
  struct Rank {
    std::unique_ptr<Transport> transport = {};
    std::map<std::pair<std::uint32_t, std::uint64_t>, ChannelId> channels = {};
    std::map<ChannelId, std::pair<std::uint32_t, std::uint64_t>> ends = {};  // peer and lane
    std::vector<TransportOp> backlog = {};                                   // from `offered` on
    std::size_t offered = 0;
  };
  using Order = std::tuple<std::uint32_t, ChannelId, TransportOp::Kind>;
  using Direction = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // from, to, lane

  bool offer(Rank& rank);
  bool poll(std::uint32_t number);
  void complete(std::uint32_t number, const TransportCompletion& completion);
  /// Of an op that is over; if it went well, its tag is the message's.
  void check_tag(const Outcome& outcome, const TransportCompletion& completion);
  [[nodiscard]] std::string pending() const;

  std::unique_ptr<TransportNet> net_;
  std::vector<Rank> ranks_;
  std::vector<std::string> addresses_;
  std::deque<Outcome> outcomes_;  // by token
  std::map<Order, std::deque<Token>> queues_;
  std::map<Direction, std::deque<std::uint64_t>> tags_;  // of what is sent, until it is received
  std::uint64_t outstanding_ = 0;
  std::size_t poll_batch_ = 64;
  std::size_t post_batch_ = 64;
};

/// So much memory of this process is in use.
[[nodiscard]] std::uint64_t resident_bytes();

}  // namespace hocket::testing
