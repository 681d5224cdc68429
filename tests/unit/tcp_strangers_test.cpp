// The TCP transport among those who do not belong: scanners, garbage, halves of handshakes, floods,
// recorded bytes, members of another job. Nothing breaks, nothing leaks, and its channels go on.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "base/limits.hpp"
#include "net/socket.hpp"
#include "support/require.hpp"
#include "transports/common/link.hpp"
#include "transports/tcp/transport.hpp"
#include "wire/handshake.hpp"

namespace hocket::testing {
namespace {

using namespace std::chrono_literals;

std::size_t open_files() {
  using Iterator = std::filesystem::directory_iterator;
  return static_cast<std::size_t>(std::distance(Iterator("/proc/self/fd"), Iterator()));
}

std::unique_ptr<Transport> rank_of_job(std::uint32_t rank, const std::string& job = "ours",
                                       const std::string& secret = "secret") {
  return require(tcp::TcpTransport::make(
      {.rank = rank, .size = 2, .connect_timeout = 10s, .job = job, .secret = secret}, 1));
}

/// Two ranks that talk while others do what they want.
struct KnownPair {
  KnownPair() {
    const std::string addresses[] = {ranks[0]->address(), ranks[1]->address()};
    for (const auto& rank : ranks) require(rank->connect(addresses));
    for (std::uint32_t i = 0; i < 2; ++i) channels[i] = require(ranks[i]->open(1 - i, 0));
  }

  void pump(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      for (const auto& rank : ranks) {
        TransportCompletion none;
        if (rank->poll({&none, 1}) != 0) FAIL("a completion of no op");
      }
    }
  }

  /// A message from rank 0 to rank 1.
  void talk() {
    std::byte sent[] = {std::byte{7}};
    std::byte received[] = {std::byte{0}};
    const TransportOp send = {.channel = channels[0], .first = {sent, 1}};
    const TransportOp receive = {
        .kind = TransportOp::Kind::recv, .channel = channels[1], .first = {received, 1}};
    REQUIRE(ranks[0]->post({&send, 1}) == 1);
    REQUIRE(ranks[1]->post({&receive, 1}) == 1);
    const Stopwatch watch;
    for (std::size_t over = 0; over < 2;) {
      for (const auto& rank : ranks) {
        TransportCompletion completion;
        if (rank->poll({&completion, 1}) == 0) continue;
        require(completion.status);
        ++over;
      }
      if (watch.elapsed() > soon) FAIL("the message does not arrive");
    }
    REQUIRE(received[0] == sent[0]);
  }

  [[nodiscard]] Fd stranger() const {
    const auto address = require(common::parse_address(ranks[1]->address()));
    const Deadline deadline = Deadline::after(monotonic_clock(), soon);
    return require(net::connect_to(
        require(net::resolve(address.endpoints.front(), deadline)).front(), deadline));
  }

  /// Whether the other side has closed, after a while.
  bool is_shut(const Fd& socket) {
    const Stopwatch watch;
    while (watch.elapsed() < soon) {
      pump(1);
      char bytes[256];
      const ssize_t count = ::recv(socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (count == 0 || (count < 0 && errno != EAGAIN)) return true;
    }
    return false;
  }

  std::unique_ptr<Transport> ranks[2] = {rank_of_job(0), rank_of_job(1)};
  ChannelId channels[2] = {};
};

void say(const Fd& socket, std::string_view words) {
  static_cast<void>(::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL));
}

std::string client_hello(const wire::Credentials& credentials, wire::Purpose purpose) {
  return wire::ClientHandshake(credentials, purpose, wire::Nonce{}).hello();
}

}  // namespace

TEST_CASE("garbage ends where it comes from") {
  KnownPair pair;
  pair.talk();
  const std::string words[] = {
      "GET / HTTP/1.1\r\n\r\n",
      std::string(5000, '\0'),
      "\x16\x03\x01",
      std::string(wire::magic) + std::string(100, '\xff'),
      client_hello({.job = "other", .secret = "secret"}, wire::Purpose::data_link),
      client_hello({.job = "ours", .secret = ""}, wire::Purpose::data_link),
      client_hello({.job = "ours", .secret = "secret"}, wire::Purpose::store),
      client_hello({.job = "ours", .secret = "secret"}, wire::Purpose::data_link) +
          std::string(200, 'x'),
  };
  for (const std::string& each : words) {
    CAPTURE(each.substr(0, 20));
    const Fd socket = pair.stranger();
    say(socket, each);
    REQUIRE(pair.is_shut(socket));
    pair.talk();
  }
}

TEST_CASE("what was recorded is worth nothing") {
  KnownPair pair;
  pair.talk();
  // A real dialler's bytes, said to us and then again to the transport.
  const wire::Credentials credentials = {.job = "ours", .secret = "secret"};
  wire::ClientHandshake client(credentials, wire::Purpose::data_link, wire::Nonce{});
  wire::ServerHandshake server(credentials, wire::Purpose::data_link, wire::Nonce{});
  const std::string proof = require(client.on_challenge(server.on_hello(client.hello()).reply));
  const Fd socket = pair.stranger();
  say(socket, client.hello());
  pair.pump(20);
  say(socket, proof);
  REQUIRE(pair.is_shut(socket));
  pair.talk();
}

TEST_CASE("who stops in the middle is sent away in time") {
  KnownPair pair;
  pair.talk();
  const std::string hello =
      client_hello({.job = "ours", .secret = "secret"}, wire::Purpose::data_link);
  std::vector<Fd> strangers;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5}, hello.size() - 1, hello.size()}) {
    say(strangers.emplace_back(pair.stranger()), hello.substr(0, bytes));
  }
  const Stopwatch watch;
  for (const Fd& each : strangers) REQUIRE(pair.is_shut(each));
  REQUIRE(watch.elapsed() > limits::handshake_timeout / 2);
  pair.talk();
}

TEST_CASE("a flood of strangers leaks nothing, and members still get in") {
  KnownPair pair;
  pair.talk();
  const std::size_t before = open_files();
  {
    std::vector<Fd> strangers;
    for (std::size_t i = 0; i < limits::data_strangers_max + 200; ++i) {
      strangers.push_back(pair.stranger());
      if (i % 100 == 0) pair.pump(1);
    }
    pair.pump(20);
    REQUIRE(open_files() <= before + strangers.size() + limits::data_strangers_max + 16);
    pair.talk();
    // A new channel, that must be dialled through the crowd.
    for (std::uint32_t i = 0; i < 2; ++i) {
      pair.channels[i] = require(pair.ranks[i]->open(1 - i, 1));
    }
    pair.talk();
  }
  const Stopwatch watch;
  while (open_files() > before + 8 && watch.elapsed() < soon) pair.pump(10);
  REQUIRE(open_files() <= before + 8);
}

TEST_CASE("ranks of another job or with another secret are refused for good") {
  const std::pair<std::string, std::string> others[] = {
      {"other", "secret"}, {"ours", "another"}, {"ours", ""}};
  for (const auto& [job, secret] : others) {
    CAPTURE(job, secret);
    const auto ours = rank_of_job(0);
    const auto theirs = rank_of_job(1, job, secret);
    const std::string addresses[] = {ours->address(), theirs->address()};
    require(ours->connect(addresses));
    require(theirs->connect(addresses));
    std::byte memory[1] = {};
    const TransportOp receive = {.kind = TransportOp::Kind::recv,
                                 .channel = require(ours->open(1, 0)),
                                 .first = {memory, 1}};
    REQUIRE(ours->post({&receive, 1}) == 1);
    TransportCompletion completion;
    const Stopwatch watch;
    while (ours->poll({&completion, 1}) == 0) {
      TransportCompletion none;
      static_cast<void>(theirs->poll({&none, 1}));
      REQUIRE(watch.elapsed() < soon);
    }
    INFO(completion.status.to_string());
    REQUIRE((completion.status.code() == StatusCode::permission_denied ||
             completion.status.code() == StatusCode::mismatch));
    REQUIRE(completion.status.peer() == 1);
  }
}

}  // namespace hocket::testing
