#include "net/socket.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <fmt/format.h>

#include "net/silence.hpp"

namespace hocket::net {
namespace {

Status system_failure(std::string what, int error = errno) {
  const bool is_lost = error == ECONNRESET || error == EPIPE || error == ECONNREFUSED ||
                       error == EHOSTUNREACH || error == ENETUNREACH || error == ETIMEDOUT;
  return Status(is_lost ? StatusCode::peer_lost : StatusCode::system_error, std::move(what))
      .with_system_error(error);
}

bool would_block() noexcept { return errno == EAGAIN || errno == EWOULDBLOCK; }

/// How long a connected socket waits in recv itself, which takes half the time of a poll and a
/// recv; and how long it waits at all before it asks whether the other host still answers.
constexpr std::chrono::seconds nap{1};

Status unanswered() {
  return system_failure("the other host did not answer in time (HOCKET_HOST_TIMEOUT)", ETIMEDOUT);
}

/// Of a connected socket: fails when the other host does not answer.
Status check(Silence& silence, int socket) {
  const bool is_gone = silence.lasts(socket, monotonic_clock().now(), host_timeout());
  return is_gone ? unanswered() : Status();
}

/// Success when the socket is ready, or has failed: the next call on it tells.
Status await(int socket, short events, Deadline deadline, std::string_view what) {
  Silence silence;
  for (;;) {
    const Duration left = deadline.remaining(monotonic_clock().now());
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, nap));
    pollfd entry{.fd = socket, .events = events, .revents = 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(milliseconds.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return system_failure(fmt::format("poll to {}", what));
    if (deadline.passed(monotonic_clock().now())) {
      return Status(StatusCode::timeout, fmt::format("no time is left to {}", what));
    }
    if (Status status = check(silence, socket); !status.ok()) return status;
  }
}

/// A lookup that may outlive the one who asked for it.
struct Lookup {
  std::mutex mutex = {};
  std::condition_variable done = {};
  std::optional<int> error = {};  // of getaddrinfo; nothing while it runs
  int system_error = 0;
  std::vector<Address> addresses = {};
};

void look_up(const Endpoint& endpoint, int flags, Lookup& lookup) {
  addrinfo hints{};
  hints.ai_flags = flags | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int error = ::getaddrinfo(endpoint.host.c_str(), port.c_str(), &hints, &list);
  const int system_error = errno;
  const std::lock_guard lock(lookup.mutex);
  for (const addrinfo* each = error == 0 ? list : nullptr; each != nullptr; each = each->ai_next) {
    Address& address = lookup.addresses.emplace_back();
    address.bytes = each->ai_addrlen;
    std::copy_n(reinterpret_cast<const char*>(each->ai_addr), address.bytes,
                reinterpret_cast<char*>(&address.storage));
  }
  if (error == 0) ::freeaddrinfo(list);
  lookup.error = error;
  lookup.system_error = error == EAI_SYSTEM ? system_error : 0;
  lookup.done.notify_all();
}

}  // namespace

bool Address::is_loopback() const noexcept {
  if (storage.ss_family == AF_INET) {
    const auto& v4 = *reinterpret_cast<const sockaddr_in*>(&storage);
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127;
  }
  const auto& v6 = *reinterpret_cast<const sockaddr_in6*>(&storage);
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

bool Address::is_any() const noexcept {
  if (storage.ss_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(&storage)->sin_addr.s_addr == INADDR_ANY;
  }
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(&storage)->sin6_addr;
  const bool is_any_v4 = IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr32[3] == INADDR_ANY;
  return IN6_IS_ADDR_UNSPECIFIED(&v6) || is_any_v4;
}

Endpoint Address::endpoint() const {
  char host[NI_MAXHOST] = "";
  char port[NI_MAXSERV] = "0";
  ::getnameinfo(get(), bytes, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
  return {.host = host, .port = static_cast<std::uint16_t>(std::strtoul(port, nullptr, 10))};
}

Result<std::vector<Address>> resolve(const Endpoint& endpoint, Deadline deadline) {
  const auto lookup = std::make_shared<Lookup>();
  look_up(endpoint, AI_NUMERICHOST, *lookup);
  if (lookup->error == 0) return std::move(lookup->addresses);
  lookup->error.reset();
  std::thread([endpoint, lookup] { look_up(endpoint, AI_ADDRCONFIG, *lookup); }).detach();

  std::unique_lock lock(lookup->mutex);
  const Duration left =
      std::min<Duration>(deadline.remaining(monotonic_clock().now()), std::chrono::hours(1));
  lookup->done.wait_for(lock, left, [&] { return lookup->error.has_value(); });
  if (lookup->error == 0) return std::move(lookup->addresses);
  if (!lookup->error) {
    return Status(StatusCode::timeout,
                  fmt::format("the name {} could not be looked up in time", endpoint.host))
        .with_hint("give the address as a number, or see why the name server does not answer");
  }
  return Status(StatusCode::not_found, fmt::format("the name {} can't be looked up: {}",
                                                   endpoint.host, ::gai_strerror(*lookup->error)))
      .with_system_error(lookup->system_error)
      .with_hint("check how the host's name is spelled");
}

void set_options(int socket) noexcept {
  const auto set = [socket](int level, int option, int value) {
    // Best effort: a socket without these still works.
    static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  // The first probe after a third of the time, then one after each sixth of it.
  const auto limit = static_cast<int>(std::clamp<std::chrono::seconds::rep>(
      std::chrono::ceil<std::chrono::seconds>(host_timeout()).count(), 3, 32'767));
  const int idle = limit / 3;
  const int interval = std::max(limit / 6, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set(IPPROTO_TCP, TCP_KEEPINTVL, interval);
  set(IPPROTO_TCP, TCP_KEEPCNT, (limit - idle) / interval);
}

Result<Fd> connect_to(const Address& address, Deadline deadline) {
  const std::string there = address.endpoint().to_string();
  const auto refused = [&](int error) {
    return system_failure(fmt::format("can't connect to {}", there), error);
  };
  Fd socket = Fd::open_unforked([&] {
    return ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  });
  if (!socket) return system_failure("can't make a socket");
  if (::connect(socket.get(), address.get(), address.bytes) != 0) {
    if (errno != EINPROGRESS) return refused(errno);
    if (Status status = await(socket.get(), POLLOUT, deadline, "connect to " + there);
        !status.ok()) {
      return status;
    }
    int error = 0;
    socklen_t bytes = sizeof error;
    ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error != 0) return refused(error);
  }
  // A port that nobody listens on may be given to our own end, which then answers itself. It is
  // reset, lest it keeps the port for a minute from whoever is to listen there.
  if (local_address(socket.get()).endpoint().to_string() == there) {
    const linger reset = {.l_onoff = 1, .l_linger = 0};
    static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset));
    return refused(ECONNREFUSED);
  }
  set_options(socket.get());
  const timeval patience = {.tv_sec = nap.count(), .tv_usec = 0};
  static_cast<void>(
      ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience));
  ::fcntl(socket.get(), F_SETFL, 0);
  return socket;
}

Address local_address(int socket) {
  Address address;
  if (::getsockname(socket, address.get(), &address.bytes) != 0) address.bytes = 0;
  return address;
}

Status send_all(int socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (would_block()) {
      if (Status status = await(socket, POLLOUT, deadline, "send"); !status.ok()) return status;
    } else if (errno != EINTR) {
      return system_failure("the connection broke");
    }
  }
  return {};
}

Result<std::size_t> receive_some(int socket, std::span<char> to, Deadline deadline) {
  Silence silence;
  for (;;) {
    const bool may_nap = deadline.remaining(monotonic_clock().now()) >= nap;
    if (!may_nap) {
      if (Status status = await(socket, POLLIN, deadline, "receive"); !status.ok()) return status;
    }
    const ssize_t received = ::recv(socket, to.data(), to.size(), may_nap ? 0 : MSG_DONTWAIT);
    if (received > 0) return static_cast<std::size_t>(received);
    if (received == 0) return Status(StatusCode::peer_lost, "the other side closed the connection");
    if (!would_block() && errno != EINTR) return system_failure("the connection broke");
    if (Status status = check(silence, socket); !status.ok()) return status;
  }
}

Result<std::string> receive_exactly(int socket, std::size_t bytes, Deadline deadline) {
  std::string received(bytes, '\0');
  std::size_t count = 0;
  while (count < bytes) {
    const auto more = receive_some(socket, std::span(received).subspan(count), deadline);
    if (!more.ok()) return more.status();
    count += *more;
  }
  return received;
}

}  // namespace hocket::net
