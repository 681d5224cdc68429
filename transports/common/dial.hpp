// One connection that we make: tried until the other end lets us in or refuses for good, or the
// time is over.
#pragma once

#include <cstdint>
#include <memory>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "link/greeting.hpp"
#include "net/socket.hpp"
#include "transports/common/link.hpp"
#include "transports/common/poller.hpp"

namespace hocket::common {

struct DialOptions {
  std::uint32_t peer = 0;
  net::Address to = {};
  net::Address from = {};
  LinkHello hello = {};
  Duration timeout = Duration::zero();
  /// Dials once, after a connection has ended, only to hear why.
  bool is_inquiry = false;
};

class Dial final : public Pollee {
 public:
  enum class State : std::uint8_t { going, connected, failed };

  /// Borrows the terms and the poller.
  Dial(DialOptions options, const link::Terms& terms, Poller& poller);
  Dial(const Dial&) = delete;
  Dial& operator=(const Dial&) = delete;
  ~Dial() { hang_up(); }

  /// Does what can be done now. To be called at first, for events, and when next() has passed.
  [[nodiscard]] State advance(Instant now);
  [[nodiscard]] Deadline next() const noexcept;
  /// It is needed less than it was: to be over by then.
  void hurry(Deadline by) noexcept { give_up_ = give_up_.or_sooner(by); }
  /// Once connected.
  [[nodiscard]] int socket() const noexcept { return greeting_->socket(); }
  [[nodiscard]] link::Link take() noexcept { return greeting_->take(); }
  [[nodiscard]] const DialOptions& options() const noexcept { return options_; }
  /// Once failed.
  [[nodiscard]] const Status& failure() const noexcept { return failure_; }
  /// The other end closed the channel and said why.
  [[nodiscard]] bool peer_closed() const noexcept { return peer_closed_; }

 private:
  [[nodiscard]] State connect(Instant now);
  [[nodiscard]] State greet(Instant now);
  [[nodiscard]] State try_again(Status why, Instant now);
  /// What the other end has answered.
  [[nodiscard]] State conclude(Instant now);
  [[nodiscard]] State fail(Status why);
  void hang_up() noexcept;

  const DialOptions options_;
  const link::Terms& terms_;
  Poller& poller_;
  Deadline give_up_;
  Deadline next_try_ = Deadline(Instant());
  Duration pause_;
  Fd connecting_ = {};
  std::unique_ptr<link::DialGreeting> greeting_ = {};
  Status failure_ = {};
  bool peer_closed_ = false;
};

}  // namespace hocket::common
