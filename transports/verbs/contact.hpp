// The authenticated connection to another rank: over it the two ends tell each other of their queue
// pairs, and as it ends with the process, its end is how a death is seen while the fabric is
// silent.
#pragma once

#include <cstdint>
#include <string>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "link/greeting.hpp"
#include "transports/common/poller.hpp"
#include "transports/verbs/wire.hpp"

namespace hocket::verbs {

/// Who is told of what happens to a descriptor.
struct Watch : common::Pollee {
  enum class What : std::uint8_t { contact, completions, adapter };
  Watch(What of, std::uint32_t which) : Pollee(Role::stream), what(of), number(which) {}
  What what;
  std::uint32_t number;  // of the peer, or of the rail
};

class Contact final : public Watch {
 public:
  enum class State : std::uint8_t { none, told_card, told_ready, linked };

  explicit Contact(std::uint32_t rank) : Watch(What::contact, rank) {}

  [[nodiscard]] State state() const noexcept { return state_; }
  [[nodiscard]] int socket() const noexcept { return link_.socket.get(); }
  [[nodiscard]] Deadline give_up() const noexcept { return give_up_; }

  /// Tells our card.
  [[nodiscard]] Status begin(link::Link link, const Card& ours, Deadline give_up);
  /// Reads what has come. True when it is worth to go on: the other's card is there, or its word
  /// that it can receive. Fails with peer_lost when the connection has ended.
  [[nodiscard]] Result<bool> look();
  /// Of the other end; once look() was true.
  [[nodiscard]] Result<Card> card() const;
  /// Our queue pairs can receive.
  [[nodiscard]] Status say_ready();
  /// Both ends can receive, from now on.
  [[nodiscard]] bool try_to_link() noexcept;
  void end() noexcept { link_ = {}; }

 private:
  [[nodiscard]] Status say(const std::string& words);

  link::Link link_ = {};
  std::string said_ = {};  // by the other end
  State state_ = State::none;
  Deadline give_up_ = Deadline::never();
};

}  // namespace hocket::verbs
