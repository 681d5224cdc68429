#include "trace/web.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "link/sockets.hpp"
#include "net/socket.hpp"

namespace hocket::trace {
namespace {

/// A client that takes longer is dropped, because the next one waits for it.
constexpr Duration patience = std::chrono::seconds(2);
constexpr std::size_t request_bytes_max = 8192;
constexpr Duration retry_pause = std::chrono::milliseconds(10);  // without descriptors

bool wait_for(int socket, short events, Deadline deadline) {
  pollfd source = {socket, events, 0};
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining(monotonic_clock().now()));
  return ::poll(&source, 1, static_cast<int>(left.count())) > 0;
}

/// Up to the empty line behind its headers. Nothing if the client sends something else.
std::string read_request(int socket, Deadline deadline) {
  std::string request;
  std::array<char, 1024> bytes;
  while (request.find("\r\n\r\n") == std::string::npos) {
    if (request.size() > request_bytes_max || !wait_for(socket, POLLIN, deadline)) return {};
    const ssize_t count = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count <= 0) return {};
    request.append(bytes.data(), static_cast<std::size_t>(count));
  }
  return request;
}

void send_all(int socket, std::string_view bytes, Deadline deadline) {
  while (!bytes.empty() && wait_for(socket, POLLOUT, deadline)) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (count < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string response(std::string_view status, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n\r\n{}",
      status, body.size(), body);
}

std::string answer(std::string_view request, const std::function<std::string()>& page) {
  if (request.starts_with("GET / ") || request.starts_with("GET /metrics ")) {
    return response("200 OK", page());
  }
  if (!request.starts_with("GET ")) return response("405 Method Not Allowed", "only GET\n");
  return response("404 Not Found", "the metrics are at /metrics\n");
}

}  // namespace

Status serve(const net::Endpoint& at, const std::function<std::string()>& page,
             const std::function<void(const net::Endpoint&)>& ready) {
  const auto addresses = net::resolve(at, Deadline::after(monotonic_clock(), patience));
  if (!addresses.ok()) return addresses.status();
  auto listener = link::listen_at(addresses->front());
  if (!listener.ok()) return listener.status();
  ready(net::local_address(listener->get()).endpoint());
  for (;;) {
    if (!wait_for(listener->get(), POLLIN, Deadline::after(monotonic_clock(), patience))) continue;
    const Fd client = link::accept_next(listener->get());
    if (!client) {
      std::this_thread::sleep_for(retry_pause);
      continue;
    }
    const Deadline deadline = Deadline::after(monotonic_clock(), patience);
    const std::string request = read_request(client.get(), deadline);
    if (!request.empty()) send_all(client.get(), answer(request, page), deadline);
  }
}

}  // namespace hocket::trace
