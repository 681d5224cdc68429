// Clients of a store's server for tests: sockets of strangers, and what others notice of them.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "net/socket.hpp"
#include "store/server.hpp"
#include "store/store.hpp"
#include "support/catch.hpp"

namespace hocket::testing {

inline Deadline in(Duration time) { return Deadline::after(monotonic_clock(), time); }

inline std::unique_ptr<store::Server> start_server(store::ServerOptions options) {
  auto server = store::Server::start(std::move(options));
  REQUIRE(server.status().to_string() == "ok");
  return std::move(*server);
}

/// A socket that has said nothing yet.
inline Fd stranger(const store::Server& server) {
  const auto addresses = net::resolve(server.endpoint(), in(std::chrono::seconds(5)));
  REQUIRE(addresses.ok());
  auto socket = net::connect_to(addresses->front(), in(std::chrono::seconds(5)));
  REQUIRE(socket.status().to_string() == "ok");
  return std::move(*socket);
}

/// Whether the other side closes within this time; what it sends before is dropped.
inline bool is_closed_within(const Fd& socket, Duration time) {
  std::vector<char> dropped(4096);
  const Deadline deadline = in(time);
  for (;;) {
    const auto received = net::receive_some(socket.get(), dropped, deadline);
    if (!received.ok()) return received.status().code() == StatusCode::peer_lost;
  }
}

/// The longest of many trips while something goes on.
inline Duration slowest_trip(store::Store& store, int trips) {
  Duration slowest = Duration::zero();
  for (int i = 0; i < trips; ++i) {
    const Instant start = monotonic_clock().now();
    REQUIRE(store.ping().to_string() == "ok");
    slowest = std::max(slowest, monotonic_clock().now() - start);
  }
  return slowest;
}

inline void await_connections(const store::Server& server, std::size_t count) {
  const Deadline deadline = in(std::chrono::seconds(20));
  while (server.connections() != count && !deadline.passed(monotonic_clock().now())) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(server.connections() == count);
}

}  // namespace hocket::testing
