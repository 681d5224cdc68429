// The descriptors that Asio works on, so that a child made by fork() keeps none of them: sockets,
// and what Asio opens for itself and shows to nobody.
#pragma once

#include <utility>
#include <vector>

#include <sys/socket.h>

#include <asio/error_code.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "base/fd.hpp"
#include "net/socket.hpp"

namespace hocket::link {

/// A socket that Asio works on and an Fd owns.
/// `Socket` is asio::ip::tcp::socket or asio::ip::tcp::acceptor.
template <class Socket>
class OwnedSocket {
 public:
  OwnedSocket(asio::io_context& io, Fd fd) : fd_(std::move(fd)), socket_(io) {
    const bool is_v6 = net::local_address(fd_.get()).storage.ss_family == AF_INET6;
    socket_.assign(is_v6 ? asio::ip::tcp::v6() : asio::ip::tcp::v4(), fd_.get());
  }
  OwnedSocket(const OwnedSocket&) = delete;
  OwnedSocket& operator=(const OwnedSocket&) = delete;
  ~OwnedSocket() { close(); }

  [[nodiscard]] Socket* operator->() noexcept { return &socket_; }
  [[nodiscard]] const Socket* operator->() const noexcept { return &socket_; }

  /// Ends what waits for it.
  void close() noexcept {
    asio::error_code ignored;
    if (socket_.is_open()) static_cast<void>(socket_.release(ignored));
    fd_.reset();
  }

 private:
  Fd fd_;
  Socket socket_;
};

/// The epoll by which an io_context watches one of its sockets, and what that epoll watches
/// besides: a timer and what wakes it up. A child made by fork() closes them, as long as this
/// lives. Without /proc it finds none, and children keep them, which does no harm but that they are
/// open.
class ReactorFiles {
 public:
  /// Of the io_context that works on this socket and on no other yet.
  explicit ReactorFiles(int socket);
  ReactorFiles(const ReactorFiles&) = delete;
  ReactorFiles& operator=(const ReactorFiles&) = delete;
  ~ReactorFiles();

 private:
  std::vector<int> files_;
};

}  // namespace hocket::link
