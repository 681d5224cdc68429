#include "link/door.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <exception>
#include <utility>

#include <sys/socket.h>

#include "base/log.hpp"
#include "link/sockets.hpp"

namespace hocket::link {
namespace {

constexpr std::size_t strangers_max = 64;
constexpr std::chrono::milliseconds accept_pause{100};  // where the system has no descriptors

}  // namespace

Door::Door(Reactor& reactor, Fd listener, const Terms& terms, const Words& words, LineHost& host)
    : reactor_(reactor),
      listener_(std::move(listener)),
      terms_(terms),
      words_(words),
      host_(host),
      descriptor_(reactor.io(), listener_.get()),
      timer_(reactor.io()) {}

void Door::await_strangers() {
  descriptor_.async_wait(asio::posix::descriptor_base::wait_read,
                         [this](const asio::error_code& error) {
                           if (!error && !is_closed_) accept();
                         });
}

void Door::accept() {
  try {
    accept_some();
  } catch (const std::exception& error) {  // no memory
    log::line(log::Level::warning, "control: a connection can't be taken: {}", error.what());
    rest(monotonic_clock().now() + accept_pause);
  }
}

void Door::accept_some() {
  const Instant now = monotonic_clock().now();
  push_out(now);
  for (std::int64_t taken = 0; taken < limits::strangers_together; ++taken) {
    if (!tokens_.take(now)) {
      set_backlog(limits::flooded_backlog);  // who belongs to us is not far behind then
      return rest(tokens_.when(limits::strangers_together, now));
    }
    Fd socket = accept_next(listener_.get());
    if (!socket) {
      const int error = errno;
      tokens_.give_back();
      if (tokens_.is_full(now)) set_backlog(SOMAXCONN);
      return error == EAGAIN ? await_strangers() : rest(now + accept_pause);
    }
    if (strangers_.size() >= strangers_max) {
      if (strangers_.front().line != nullptr) strangers_.front().line->close();
      strangers_.pop_front();
    }
    Stranger& stranger = strangers_.emplace_back();
    stranger.until = now + limits::handshake_timeout;
    stranger.line = Line::accept(reactor_, std::move(socket), terms_, words_, host_);
  }
  await_strangers();
}

void Door::set_backlog(int length) noexcept {
  if (std::exchange(backlog_, length) == length) return;
  static_cast<void>(::listen(listener_.get(), length));
}

void Door::rest(Instant until) {
  timer_.expires_at(until);
  timer_.async_wait([this](const asio::error_code& error) {
    if (!error && !is_closed_) accept();
  });
}

/// Those whose time is over; when the next one comes is soon enough, as they are few.
void Door::push_out(Instant now) {
  while (!strangers_.empty() && strangers_.front().until <= now) {
    if (strangers_.front().line != nullptr) strangers_.front().line->close();
    strangers_.pop_front();
  }
}

std::shared_ptr<Line> Door::admit(const Line& line) {
  const auto found = std::ranges::find_if(
      strangers_, [&](const Stranger& each) { return each.line.get() == &line; });
  if (found == strangers_.end()) return nullptr;
  std::shared_ptr<Line> admitted = std::move(found->line);
  strangers_.erase(found);
  tokens_.give_back();
  return admitted;
}

void Door::forget(const Line& line) {
  std::erase_if(strangers_, [&](const Stranger& each) { return each.line.get() == &line; });
}

void Door::close() noexcept {
  if (std::exchange(is_closed_, true)) return;
  try {
    timer_.cancel();
    if (descriptor_.is_open()) static_cast<void>(descriptor_.release());
  } catch (...) {  // there is nothing to cancel
  }
  for (const Stranger& each : strangers_) {
    if (each.line != nullptr) each.line->close();
  }
  strangers_.clear();
}

}  // namespace hocket::link
