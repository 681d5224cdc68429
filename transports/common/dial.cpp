#include "transports/common/dial.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <string>
#include <utility>

#include <poll.h>

#include <fmt/format.h>

#include "base/text.hpp"
#include "link/sockets.hpp"

namespace hocket::common {
namespace {

using namespace std::chrono_literals;

constexpr Duration pause_min = 5ms;
constexpr Duration pause_max = 1s;
/// Messages of the greeting after which the other end has judged us.
constexpr int judged = 3;

bool is_connected(int socket) noexcept {
  pollfd entry = {.fd = socket, .events = POLLOUT, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

/// Whether to try again is in vain.
bool is_final(const Status& why, int stage) noexcept {
  switch (why.code()) {
    case StatusCode::timeout:
    case StatusCode::limit_exceeded:
    case StatusCode::system_error:
      return false;
    case StatusCode::peer_lost:
      return stage == judged || why.system_error() == ECONNREFUSED;
    default:
      return true;
  }
}

}  // namespace

Dial::Dial(DialOptions options, const link::Terms& terms, Poller& poller)
    : Pollee(Role::dial),
      options_(std::move(options)),
      terms_(terms),
      poller_(poller),
      give_up_(Deadline::after(monotonic_clock(), options_.timeout)),
      pause_(pause_min) {}

Deadline Dial::next() const noexcept {
  const bool is_resting = greeting_ == nullptr && !connecting_;
  return is_resting ? next_try_.or_sooner(give_up_) : give_up_;
}

Dial::State Dial::advance(Instant now) {
  State state = State::going;
  if (greeting_ != nullptr || connecting_) {
    state = greet(now);
  } else if (next_try_.passed(now)) {
    state = connect(now);
  }
  if (state != State::going || !give_up_.passed(now)) return state;
  Status why =
      Status(StatusCode::timeout,
             fmt::format("rank {} did not answer at {} within {}", options_.peer,
                         options_.to.endpoint().to_string(), format_duration(options_.timeout)))
          .with_hint(
              "see whether its process runs, whether a firewall is between, and "
              "whether HOCKET_INTERFACE names the right network");
  if (!failure_.ok()) why = std::move(why).caused_by(std::move(failure_));
  return fail(std::move(why));
}

Dial::State Dial::connect(Instant now) {
  auto socket = link::begin_connecting(options_.to, options_.from);
  if (!socket.ok()) return try_again(socket.status(), now);
  connecting_ = std::move(*socket);
  Status status = poller_.add(connecting_.get(), *this);
  return status.ok() ? State::going : try_again(std::move(status), now);
}

Dial::State Dial::greet(Instant now) {
  if (greeting_ == nullptr) {
    if (!is_connected(connecting_.get())) return State::going;
    if (const int error = link::connect_error(connecting_.get(), options_.to); error != 0) {
      const bool is_refused = error == ECONNREFUSED;
      return try_again(Status(is_refused ? StatusCode::peer_lost : StatusCode::system_error,
                              is_refused ? "nobody listens there" : "can't connect")
                           .with_system_error(error)
                           .with_hint("see why its process has ended"),
                       now);
    }
    greeting_ = std::make_unique<link::DialGreeting>(std::move(connecting_), terms_, link_words,
                                                     options_.hello.encode());
  }
  const auto is_over = greeting_->advance();
  if (!is_over.ok()) return try_again(is_over.status(), now);
  return *is_over ? conclude(now) : State::going;
}

Dial::State Dial::conclude(Instant now) {
  const LinkAnswer answer = LinkAnswer::decode(greeting_->answer());
  Status status = answer.status(options_.hello, options_.peer);
  if (status.ok()) return State::connected;
  peer_closed_ = answer.verdict == LinkVerdict::closed;
  return try_again(std::move(status), now);
}

Dial::State Dial::try_again(Status why, Instant now) {
  const int stage = greeting_ == nullptr ? 0 : greeting_->stage();
  hang_up();
  if (peer_closed_) return fail(std::move(why));
  if (options_.is_inquiry || is_final(why, stage)) {
    const std::string what = stage == judged
                                 ? std::string(why.what())
                                 : fmt::format("rank {} can't be reached at {}: {}", options_.peer,
                                               options_.to.endpoint().to_string(), why.what());
    return fail(Status(why.code(), what)
                    .with_system_error(why.system_error())
                    .with_hint(std::string(why.hint())));
  }
  failure_ = std::move(why);
  next_try_ = Deadline(now + pause_);
  pause_ = std::min(2 * pause_, pause_max);
  return State::going;
}

Dial::State Dial::fail(Status why) {
  hang_up();
  if (why.peer() < 0) why = std::move(why).with_peer(static_cast<int>(options_.peer));
  failure_ = std::move(why);
  return State::failed;
}

void Dial::hang_up() noexcept {
  poller_.forget(*this, greeting_ == nullptr ? connecting_.get() : greeting_->socket());
  connecting_.reset();
  greeting_.reset();
}

}  // namespace hocket::common
