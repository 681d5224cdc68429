// How connections are set up.
#include <array>
#include <string>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "link/sockets.hpp"
#include "support/catch.hpp"

using namespace hocket;
using link::accept_next;
using link::begin_connecting;
using link::listen_at;

namespace {

net::Address loopback(const char* host) {
  return net::resolve({.host = host, .port = 0}, {}).value().front();
}

std::string congestion_control(int socket) {
  std::array<char, 16> name = {};
  socklen_t bytes = name.size();
  REQUIRE(::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes) == 0);
  return name.data();
}

/// Between two addresses: of the end that connects, and of the one that accepts.
std::array<std::string, 2> congestion_controls(const char* from, const char* to) {
  const Fd listener = listen_at(loopback(to)).value();
  const Fd ours = begin_connecting(net::local_address(listener.get()), loopback(from)).value();
  pollfd readable = {listener.get(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, 5000) == 1);
  const Fd theirs = accept_next(listener.get());
  return {congestion_control(ours.get()), congestion_control(theirs.get())};
}

}  // namespace

TEST_CASE("between ends at one address nothing is paced, and elsewhere as the system does") {
  const Fd fresh(::socket(AF_INET, SOCK_STREAM, 0));
  const std::string usual = congestion_control(fresh.get());
  CHECK(congestion_controls("127.0.0.1", "127.0.0.1") ==
        std::array<std::string, 2>{"reno", "reno"});
  CHECK(congestion_controls("127.0.0.2", "127.0.0.1") == std::array<std::string, 2>{usual, usual});
}
