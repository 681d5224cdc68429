// A socket that Asio works on and an Fd owns, so that a child made by fork() does not keep it.
#pragma once

#include <utility>

#include <sys/socket.h>

#include <asio/error_code.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>

#include "base/fd.hpp"
#include "net/socket.hpp"

namespace hocket::store {

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

}  // namespace hocket::store
