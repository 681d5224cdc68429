#include "link/sockets.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <fmt/format.h>

namespace hocket::link {
namespace {

constexpr int socket_type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC;
constexpr std::size_t discarded_at_once = 1 << 20;

Status failure(std::string what) {
  return Status(StatusCode::system_error, std::move(what)).with_system_error(errno);
}

net::Address with_any_port(net::Address address) noexcept {
  if (address.storage.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(&address.storage)->sin_port = 0;
  } else {
    reinterpret_cast<sockaddr_in6*>(&address.storage)->sin6_port = 0;
  }
  return address;
}

bool is_same_host(const net::Address& a, const net::Address& b) noexcept {
  if (a.storage.ss_family != b.storage.ss_family) return false;
  if (a.storage.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in&>(a.storage).sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in&>(b.storage).sin_addr.s_addr;
  }
  return std::memcmp(&reinterpret_cast<const sockaddr_in6&>(a.storage).sin6_addr,
                     &reinterpret_cast<const sockaddr_in6&>(b.storage).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

/// Both families have the port in the same place.
bool is_same(const net::Address& a, const net::Address& b) noexcept {
  return is_same_host(a, b) && reinterpret_cast<const sockaddr_in&>(a.storage).sin_port ==
                                   reinterpret_cast<const sockaddr_in&>(b.storage).sin_port;
}

/// To be chosen before there is a connection: one that paces is not rid of it by another choice.
/// Best effort: every system has it, and allows it to all.
void avoid_pacing(int socket) noexcept {
  constexpr std::string_view plainest = "reno";
  static_cast<void>(
      ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, plainest.data(), plainest.size()));
}

/// What a new socket has.
void pace_as_usual(int socket, int family) noexcept {
  const Fd fresh = Fd::open_unforked([&] { return ::socket(family, socket_type, 0); });
  std::array<char, 16> name = {};
  socklen_t bytes = name.size();
  if (::getsockopt(fresh.get(), IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes) != 0) return;
  static_cast<void>(::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), bytes));
}

}  // namespace

Result<Fd> listen_at(const net::Address& address) {
  Fd socket =
      Fd::open_unforked([&] { return ::socket(address.storage.ss_family, socket_type, 0); });
  if (socket) {
    avoid_pacing(socket.get());  // what is accepted is alike
    // A server that is started again gets its port back at once. Without a port of its own, the
    // system might give it one that another process has bound and does not listen on yet.
    const int reuses = address.endpoint().port != 0 ? 1 : 0;
    ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &reuses, sizeof reuses);
  }
  if (!socket || ::bind(socket.get(), address.get(), address.bytes) != 0 ||
      ::listen(socket.get(), SOMAXCONN) != 0) {
    return failure(fmt::format("can't listen at {}", address.endpoint().host))
        .with_hint("is it an address of this host? HOCKET_INTERFACE chooses another");
  }
  return socket;
}

Fd accept_next(int listener) noexcept {
  for (;;) {
    net::Address from;
    Fd socket = Fd::open_unforked(
        [&] { return ::accept4(listener, from.get(), &from.bytes, SOCK_NONBLOCK | SOCK_CLOEXEC); });
    if (socket) {
      net::set_options(socket.get());
      if (!is_same_host(from, net::local_address(socket.get()))) {
        pace_as_usual(socket.get(), from.storage.ss_family);
      }
      return socket;
    }
    if (errno != EINTR && errno != ECONNABORTED && errno != EPROTO) return socket;
  }
}

Result<Fd> begin_connecting(const net::Address& to, const net::Address& from) {
  Fd socket = Fd::open_unforked([&] { return ::socket(to.storage.ss_family, socket_type, 0); });
  if (!socket) return failure("can't make a socket");
  net::set_options(socket.get());
  if (is_same_host(to, from)) avoid_pacing(socket.get());
  if (from.storage.ss_family == to.storage.ss_family) {
    const int is_late = 1;  // the port is chosen when the other end is known
    static_cast<void>(
        ::setsockopt(socket.get(), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &is_late, sizeof is_late));
    const net::Address ours = with_any_port(from);
    if (::bind(socket.get(), ours.get(), ours.bytes) != 0) return failure("can't bind a socket");
  }
  if (::connect(socket.get(), to.get(), to.bytes) == 0 || errno == EINPROGRESS) return socket;
  return failure("can't connect");
}

/// A port that nobody listens on may be given to our own end, which then answers itself.
int connect_error(int socket, const net::Address& to) noexcept {
  int error = 0;
  socklen_t bytes = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &bytes);
  if (error != 0 || !is_same(net::local_address(socket), to)) return error;
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  static_cast<void>(::setsockopt(socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset));
  return ECONNREFUSED;
}

bool discard_input(int socket) noexcept {
  for (;;) {
    const ssize_t count = ::recv(socket, nullptr, discarded_at_once, MSG_TRUNC | MSG_DONTWAIT);
    if (count == 0) return false;
    if (count < 0 && errno != EINTR) return errno == EAGAIN;
  }
}

}  // namespace hocket::link
