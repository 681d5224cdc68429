// Where other processes dial a line to us. Who does not prove soon who it is has to go, and a flood
// of such strangers waits outside. Lives on the reactor's thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>

#include <sys/socket.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "base/limits.hpp"
#include "link/line.hpp"
#include "link/reactor.hpp"
#include "net/token_bucket.hpp"

namespace hocket::link {

class Door {
 public:
  /// Borrows all of it.
  Door(Reactor& reactor, Fd listener, const Terms& terms, const Words& words, LineHost& host);

  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;
  ~Door() { close(); }

  void open() { await_strangers(); }
  void close() noexcept;
  /// The line has proved who it is: it is the caller's from then on.
  [[nodiscard]] std::shared_ptr<Line> admit(const Line& line);
  /// It has ended.
  void forget(const Line& line);

 private:
  struct Stranger {
    std::shared_ptr<Line> line = {};
    Instant until = {};
  };

  void await_strangers();
  void accept();
  void accept_some();
  void set_backlog(int length) noexcept;
  void rest(Instant until);
  void push_out(Instant now);

  Reactor& reactor_;
  const Fd listener_;
  const Terms& terms_;
  const Words words_;
  LineHost& host_;
  asio::posix::stream_descriptor descriptor_;
  asio::steady_timer timer_;
  TokenBucket tokens_{limits::strangers_at_once, limits::strangers_per_second};
  std::list<Stranger> strangers_;  // the oldest first
  int backlog_ = SOMAXCONN;
  bool is_closed_ = false;
};

}  // namespace hocket::link
