#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "base/limits.hpp"
#include "base/rng.hpp"
#include "net/socket.hpp"
#include "store/server.hpp"
#include "store/tcp_store.hpp"
#include "support/catch.hpp"
#include "support/store_clients.hpp"
#include "wire/fault.hpp"
#include "wire/handshake.hpp"

using namespace std::chrono_literals;
using hocket::Deadline;
using hocket::Duration;
using hocket::Fd;
using hocket::Instant;
using hocket::monotonic_clock;
using hocket::Result;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::Connection;
using hocket::store::ConnectOptions;
using hocket::store::Kind;
using hocket::store::Reply;
using hocket::store::Request;
using hocket::store::Server;
using hocket::store::ServerOptions;
using hocket::store::Store;
using hocket::store::TcpStore;
using hocket::testing::await_connections;
using hocket::testing::in;
using hocket::testing::is_closed_within;
using hocket::testing::slowest_trip;
using hocket::testing::start_server;
using hocket::testing::stranger;
using hocket::wire::ClientHandshake;
using hocket::wire::Credentials;

namespace {

const Credentials ours = {.job = "job 1", .secret = "the secret"};

std::unique_ptr<Server> start(ServerOptions options = {.credentials = ours}) {
  return start_server(std::move(options));
}

ConnectOptions to(const Server& server, Credentials credentials = ours) {
  return {.server = server.endpoint(), .credentials = std::move(credentials), .timeout = 10s};
}

std::unique_ptr<TcpStore> connect(const Server& server) {
  auto store = TcpStore::connect(to(server));
  REQUIRE(store.status().to_string() == "ok");
  return std::move(*store);
}

Duration time_of(auto&& work) {
  const Instant start = monotonic_clock().now();
  work();
  return monotonic_clock().now() - start;
}

void send(const Fd& socket, std::string_view bytes) {
  REQUIRE(hocket::net::send_all(socket.get(), bytes, in(5s)).ok());
}

/// A socket whose owner has proved who it is, and says what it likes then.
Fd insider(const Server& server) {
  Fd socket = stranger(server);
  hocket::wire::Nonce nonce{};
  hocket::random_bytes(nonce);
  ClientHandshake handshake(ours, hocket::wire::Purpose::store, nonce);
  send(socket, handshake.hello());
  const auto challenge =
      hocket::net::receive_exactly(socket.get(), hocket::wire::challenge_bytes, in(5s));
  REQUIRE(challenge.ok());
  const auto proof = handshake.on_challenge(*challenge);
  REQUIRE(proof.ok());
  send(socket, *proof);
  const auto answer =
      hocket::net::receive_exactly(socket.get(), hocket::wire::answer_bytes, in(5s));
  REQUIRE(answer.ok());
  REQUIRE(handshake.on_answer(*answer).ok());
  return socket;
}

std::string frame(std::string_view message, std::uint64_t id = 0) {
  std::string bytes;
  const std::size_t start = hocket::wire::open_frame(bytes);
  bytes += message;
  hocket::wire::close_frame(bytes, start, id);
  return bytes;
}

std::string frame(const Request& request, std::uint64_t id = 0) {
  std::string message;
  hocket::store::encode(request, message);
  return frame(message, id);
}

/// The replies that come to a socket next, decoded.
std::vector<Reply> next_replies(const Fd& socket, std::size_t count) {
  std::vector<char> bytes(4096);
  hocket::wire::FrameBuffer buffer(4096);
  std::vector<Reply> replies;
  while (replies.size() < count) {
    const auto received = hocket::net::receive_some(socket.get(), bytes, in(5s));
    REQUIRE(received.ok());
    buffer.append({bytes.data(), *received});
    for (auto next = buffer.next(); next.ok() && *next; next = buffer.next()) {
      auto reply = hocket::store::decode_reply((*next)->message);
      REQUIRE(reply.ok());
      replies.push_back(std::move(*reply));
    }
  }
  return replies;
}

constexpr Duration soon = 3s;  // on a busy machine

}  // namespace

TEST_CASE("a server picks a free port and serves") {
  const auto server = start();
  REQUIRE(server->endpoint().host == "127.0.0.1");
  REQUIRE(server->endpoint().port != 0);
  const auto store = connect(*server);
  REQUIRE(store->set("k", "v").ok());
  REQUIRE(*store->get("k") == "v");
  REQUIRE(store->local_host() == "127.0.0.1");
  REQUIRE(server->connections() == 1);
}

TEST_CASE("a server listens on IPv6") {
  auto server = Server::start({.listen = {"::1", 0}, .credentials = ours});
  if (!server.ok()) {
    WARN("skipped: " << server.status().to_string());
    return;
  }
  const auto store = connect(**server);
  REQUIRE(store->ping().ok());
  REQUIRE(store->local_host() == "::1");
}

TEST_CASE("a server on every address takes IPv4") {
  const auto server = start({.listen = {"", 0}, .credentials = ours});
  ConnectOptions options = to(*server);
  options.server.host = "127.0.0.1";
  const auto store = TcpStore::connect(options);
  REQUIRE(store.status().to_string() == "ok");
}

TEST_CASE("a second server on a busy port is refused, and says so") {
  const auto first = start();
  const auto second = Server::start({.listen = first->endpoint(), .credentials = ours});
  REQUIRE(second.status().code() == StatusCode::already_exists);
  REQUIRE_THAT(std::string(second.status().what()),
               Catch::Matchers::Contains(first->endpoint().to_string()));
}

TEST_CASE("a port can be listened on again at once") {
  auto first = start();
  const auto endpoint = first->endpoint();
  const auto client = connect(*first);
  first.reset();
  const auto second = Server::start({.listen = endpoint, .credentials = ours});
  REQUIRE(second.status().to_string() == "ok");
}

TEST_CASE("without a secret only loopback is served") {
  REQUIRE(start({})->endpoint().port != 0);
  const auto refused = Server::start({.listen = {"", 0}});
  REQUIRE(refused.status().code() == StatusCode::permission_denied);
  REQUIRE_THAT(std::string(refused.status().hint()), Catch::Matchers::Contains("HOCKET_SECRET"));
  REQUIRE(Server::start({.listen = {"", 0}, .allow_without_secret = true}).ok());
}

TEST_CASE("who does not belong is refused at once and told why") {
  const auto server = start();
  const auto refusal = [&](const Credentials& theirs) {
    Status status;
    const Duration time =
        time_of([&] { status = TcpStore::connect(to(*server, theirs)).status(); });
    CHECK(time < soon);
    CHECK(status.to_string().find("secret!") == std::string::npos);
    return status;
  };
  REQUIRE(refusal({"job 1", "wrong secret!"}).code() == StatusCode::permission_denied);
  REQUIRE(refusal({"job 1", ""}).code() == StatusCode::permission_denied);
  REQUIRE(refusal({"job 2", "the secret"}).code() == StatusCode::mismatch);
  await_connections(*server, 0);
  REQUIRE(connect(*server)->ping().ok());
}

TEST_CASE("a client without a secret and a server with one tell each other apart") {
  const auto open = start({.credentials = {.job = "job 1"}});
  const auto status = TcpStore::connect(to(*open)).status();
  REQUIRE(status.code() == StatusCode::permission_denied);
}

TEST_CASE("a handshake that is replayed is refused") {
  const auto server = start();
  hocket::wire::Nonce nonce{};
  ClientHandshake handshake(ours, hocket::wire::Purpose::store, nonce);
  Fd first = stranger(*server);
  send(first, handshake.hello());
  const auto challenge =
      hocket::net::receive_exactly(first.get(), hocket::wire::challenge_bytes, in(5s));
  const auto proof = handshake.on_challenge(*challenge);
  send(first, *proof);
  REQUIRE(hocket::net::receive_exactly(first.get(), hocket::wire::answer_bytes, in(5s)).ok());

  const Fd second = stranger(*server);
  send(second, handshake.hello());
  send(second, *proof);
  send(second, frame({.kind = Kind::set, .keys = {"k"}, .values = {"v"}}));
  REQUIRE(is_closed_within(second, soon));
  REQUIRE_FALSE(*connect(*server)->check({"k"}));
}

TEST_CASE("a relay between two jobs gets nowhere") {
  const auto ours_server = start();
  const auto theirs = start({.credentials = {.job = "job 2", .secret = "the secret"}});
  // Sits where a client of job 1 connects to, and passes all on to the server of job 2.
  Fd victim = stranger(*theirs);
  hocket::wire::Nonce nonce{};
  ClientHandshake handshake(ours, hocket::wire::Purpose::store, nonce);
  send(victim, handshake.hello());
  const auto challenge =
      hocket::net::receive_exactly(victim.get(), hocket::wire::challenge_bytes, in(5s));
  REQUIRE(challenge.ok());
  const auto proof = handshake.on_challenge(*challenge);
  REQUIRE(proof.status().code() == StatusCode::mismatch);
  REQUIRE(is_closed_within(victim, soon));
}

TEST_CASE("a request in place of the proof is not served") {
  const auto server = start();
  const Fd socket = stranger(*server);
  hocket::wire::Nonce nonce{};
  send(socket, ClientHandshake(ours, hocket::wire::Purpose::store, nonce).hello());
  send(socket, frame({.kind = Kind::set, .keys = {"k"}, .values = {"v"}}));
  REQUIRE(is_closed_within(socket, soon));
  REQUIRE_FALSE(*connect(*server)->check({"k"}));
}

TEST_CASE("garbage, other protocols and half messages end that connection only") {
  const auto server = start();
  const auto store = connect(*server);
  for (const std::string_view bytes :
       {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view("\x16\x03\x01\x02\0\x01", 6),
        std::string_view("\0\xce\xf7\x85\x3c", 5),
        std::string_view("\xff\xff\xff\xff\xff\xff\xff")}) {
    const Fd socket = stranger(*server);
    send(socket, bytes);
    REQUIRE(is_closed_within(socket, soon));
  }
  REQUIRE(store->ping().ok());

  const std::string huge("\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 12);
  const std::string tiny("\x01\0\0\0\0\0\0\0\0\0\0\0", 12);
  for (const std::string& bytes : {huge, tiny, frame(std::string_view("\x01"))}) {
    const Fd socket = insider(*server);
    send(socket, bytes);
    REQUIRE(is_closed_within(socket, soon));
  }
  REQUIRE(store->ping().ok());
  await_connections(*server, 1);
}

TEST_CASE("an unknown request is answered, and the connection goes on") {
  const auto server = start();
  const Fd socket = insider(*server);
  std::string request;
  hocket::store::encode(Request{}, request);
  request[0] = '\x7f';
  send(socket, frame(request, 1));
  send(socket, frame(Request{}, 2));
  const std::vector<Reply> replies = next_replies(socket, 2);
  REQUIRE(replies[0].status.code() == StatusCode::unsupported);
  REQUIRE(replies[1].status.ok());
}

TEST_CASE("who is slow to prove who he is gets dropped, and holds up nobody") {
  const auto server = start({.credentials = ours, .handshake_timeout = 500ms});
  const auto store = connect(*server);
  hocket::wire::Nonce nonce{};
  const std::string hello = ClientHandshake(ours, hocket::wire::Purpose::store, nonce).hello();
  const Fd silent = stranger(*server);
  const Fd slow = stranger(*server);
  const Instant start = monotonic_clock().now();
  // Byte by byte, each well within the timeout.
  for (std::size_t i = 0; i < hello.size(); ++i) {
    if (!hocket::net::send_all(slow.get(), hello.substr(i, 1), in(5s)).ok()) break;
    REQUIRE(slowest_trip(*store, 1) < soon);
    std::this_thread::sleep_for(50ms);
    if (monotonic_clock().now() - start > soon) break;
  }
  REQUIRE(is_closed_within(slow, soon));
  REQUIRE(is_closed_within(silent, soon));
  REQUIRE(monotonic_clock().now() - start > 400ms);
  await_connections(*server, 1);
}

TEST_CASE("a flood of connections pushes out strangers, not clients") {
  const auto server = start({.credentials = ours, .strangers_max = 16});
  const auto store = connect(*server);
  std::vector<Fd> flood;
  for (int i = 0; i < 200; ++i) flood.push_back(stranger(*server));
  REQUIRE(slowest_trip(*store, 200) < soon);
  REQUIRE(connect(*server)->ping().ok());
  REQUIRE(is_closed_within(flood.front(), soon));
  REQUIRE(server->connections() <= 1 + 16);
}

TEST_CASE("a server that is full says so") {
  const auto server = start({.credentials = ours, .connections_max = 2});
  const auto first = connect(*server);
  const auto second = connect(*server);
  ConnectOptions options = to(*server);
  options.timeout = 300ms;
  const Status status = TcpStore::connect(options).status();
  REQUIRE(status.code() == StatusCode::timeout);
  REQUIRE_THAT(status.to_string(), Catch::Matchers::Contains("as many connections as it takes"));
  REQUIRE(first->ping().ok());
}

TEST_CASE("a request that stops half way holds up nobody") {
  const auto server = start();
  const auto store = connect(*server);
  const Fd half = insider(*server);
  const std::string request =
      frame({.kind = Kind::set, .keys = {"k"}, .values = {std::string(100'000, 'x')}});
  send(half, std::string_view(request).substr(0, request.size() / 2));
  REQUIRE(slowest_trip(*store, 200) < soon);
  REQUIRE_FALSE(*store->check({"k"}));
  send(half, std::string_view(request).substr(request.size() / 2));
  REQUIRE(store->get("k", 5s)->size() == 100'000);
}

TEST_CASE("who does not read his replies is not served further, and holds up nobody") {
  const auto server = start();
  const auto store = connect(*server);
  REQUIRE(store->set("large", std::string(1 << 20, 'x')).ok());
  const Fd greedy = insider(*server);
  std::string requests;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    requests += frame({.kind = Kind::get, .keys = {"large"}, .timeout = 1s}, i);
  }
  requests += frame({.kind = Kind::set, .keys = {"end"}, .values = {""}}, 1000);
  send(greedy, requests);
  REQUIRE(slowest_trip(*store, 200) < soon);
  REQUIRE_FALSE(*store->check({"end"}));
  // Once he reads, all is served.
  std::vector<char> bytes(1 << 20);
  std::size_t total = 0;
  while (total < std::size_t{1000} << 20) {
    const auto count = hocket::net::receive_some(greedy.get(), bytes, in(20s));
    REQUIRE(count.status().to_string() == "ok");
    total += *count;
  }
  REQUIRE(store->wait({"end"}, 10s).ok());
}

TEST_CASE("a connection has a bound on requests that wait") {
  const auto server = start();
  const auto store = connect(*server);
  const Fd greedy = insider(*server);
  std::string requests;
  for (std::uint64_t i = 0; i <= hocket::limits::store_parked_per_connection_max; ++i) {
    requests += frame({.kind = Kind::queue_pop, .keys = {"q"}, .timeout = 60s}, i);
  }
  requests += frame({.kind = Kind::set, .keys = {"end"}, .values = {""}}, 1);
  send(greedy, requests);
  REQUIRE(next_replies(greedy, 1)[0].status.code() == StatusCode::limit_exceeded);
  REQUIRE(store->wait({"end"}, 10s).ok());  // what need not wait is served all the same
}

TEST_CASE("the end of a client is noticed however many of its requests wait") {
  const auto server = start();
  const auto store = connect(*server);
  {
    const Fd greedy = insider(*server);
    std::string requests;
    for (std::uint64_t i = 0; i < hocket::limits::store_parked_per_connection_max; ++i) {
      requests += frame({.kind = Kind::barrier, .keys = {"b"}, .number = 2, .timeout = 60s}, i);
      if (i == 0) requests += frame({.kind = Kind::set, .keys = {"came"}, .values = {""}}, i);
    }
    send(greedy, requests);
    REQUIRE(store->wait({"came"}, 10s).ok());
  }
  await_connections(*server, 1);
  REQUIRE(store->barrier("b", 2, 100ms).code() == StatusCode::timeout);
}

TEST_CASE("a request that is withdrawn takes nothing") {
  const auto server = start();
  const auto store = connect(*server);
  const Fd impatient = insider(*server);
  send(impatient,
       frame({.kind = Kind::queue_pop, .keys = {"q"}, .timeout = 60s}, 7) +
           frame({.kind = Kind::barrier, .keys = {"b"}, .number = 2, .timeout = 60s}, 8) +
           frame("", 7) + frame("", 8) + frame("", 9) +
           frame({.kind = Kind::set, .keys = {"end"}, .values = {""}}, 10));
  REQUIRE(store->wait({"end"}, 10s).ok());
  REQUIRE(store->queue_push("q", "precious").ok());
  REQUIRE(*store->queue_len("q") == 1);
  REQUIRE(store->barrier("b", 2, 100ms).code() == StatusCode::timeout);
}

TEST_CASE("a client that dies takes nothing from the others") {
  const auto server = start();
  const auto store = connect(*server);
  {
    const Fd popper = insider(*server);
    send(popper, frame({.kind = Kind::queue_pop, .keys = {"q"}, .timeout = 60s}));
    const Fd at_barrier = insider(*server);
    send(at_barrier, frame({.kind = Kind::barrier, .keys = {"b"}, .number = 2, .timeout = 60s}));
    await_connections(*server, 3);
    // Both are known to wait once a later request of theirs is served.
    send(popper, frame({.kind = Kind::set, .keys = {"1"}, .values = {""}}));
    send(at_barrier, frame({.kind = Kind::set, .keys = {"2"}, .values = {""}}));
    REQUIRE(store->wait({"1", "2"}, 5s).ok());
  }
  await_connections(*server, 1);
  REQUIRE(store->queue_push("q", "kept").ok());
  REQUIRE(*store->queue_pop("q", 0s) == "kept");
  REQUIRE(store->barrier("b", 2, 100ms).code() == StatusCode::timeout);
}

TEST_CASE("when the server ends, those who wait are told at once") {
  auto server = start();
  const auto store = connect(*server);
  Status status;
  Duration time = 0s;
  std::thread waiting([&] { time = time_of([&] { status = store->get("never", 60s).status(); }); });
  std::this_thread::sleep_for(100ms);
  server.reset();
  waiting.join();
  REQUIRE(status.code() == StatusCode::peer_lost);
  REQUIRE(time < 100ms + soon);
  REQUIRE(store->ping().code() == StatusCode::peer_lost);
  REQUIRE_FALSE(store->ping().hint().empty());
}

TEST_CASE("a client that closes its store ends its own calls, and nobody else's") {
  auto server = start();
  const auto store = connect(*server);
  const auto other = connect(*server);
  Status status;
  Duration time = 0s;
  std::thread waiting([&] { time = time_of([&] { status = store->get("never", 60s).status(); }); });
  std::this_thread::sleep_for(100ms);
  store->close(Status(StatusCode::aborted, "enough of it"));
  waiting.join();
  REQUIRE(status.code() == StatusCode::peer_lost);
  REQUIRE(status.to_string().find("enough of it") != std::string::npos);
  REQUIRE(time < 100ms + soon);
  REQUIRE(store->ping().code() == StatusCode::peer_lost);
  REQUIRE(other->ping().ok());
}

TEST_CASE("a server can end while clients hammer it") {
  for (int round = 0; round < 5; ++round) {
    auto server = start();
    const auto store = connect(*server);
    std::atomic<int> odd = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const Status status = store->add("n", 1).status();
          if (status.ok()) continue;
          if (status.code() != StatusCode::peer_lost) ++odd;
          return;
        }
      });
    }
    std::this_thread::sleep_for(20ms);
    server.reset();
    for (std::thread& thread : threads) thread.join();
    REQUIRE(odd == 0);
  }
}

TEST_CASE("a server that is not there is waited for, as long as was said") {
  ConnectOptions options;
  options.credentials = ours;
  {
    const auto gone = start();
    options.server = gone->endpoint();
  }
  options.timeout = 300ms;
  Status status;
  const Duration time = time_of([&] { status = TcpStore::connect(options).status(); });
  REQUIRE(status.code() == StatusCode::timeout);
  REQUIRE(time > 150ms);
  REQUIRE(time < soon);
  REQUIRE_THAT(status.to_string(), Catch::Matchers::Contains(options.server.to_string()) &&
                                       Catch::Matchers::Contains("Connection refused"));

  std::unique_ptr<Server> server;
  std::thread late([&] {
    std::this_thread::sleep_for(200ms);
    server = std::move(*Server::start({.listen = options.server, .credentials = ours}));
  });
  options.timeout = 10s;
  const Status found = TcpStore::connect(options).status();
  late.join();
  REQUIRE(found.to_string() == "ok");
}

TEST_CASE("a server that is stopped is not waited for longer than was said") {
  // It accepts, as the system does for it, and never says a word.
  Fd silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  hocket::net::Address address = hocket::net::resolve({"127.0.0.1", 0}, in(5s))->front();
  REQUIRE(::bind(silent.get(), address.get(), address.bytes) == 0);
  REQUIRE(::listen(silent.get(), 8) == 0);
  ConnectOptions options;
  options.server = hocket::net::local_address(silent.get()).endpoint();
  options.timeout = 300ms;
  Status status;
  const Duration time = time_of([&] { status = TcpStore::connect(options).status(); });
  REQUIRE(status.code() == StatusCode::timeout);
  REQUIRE(time < soon);
}

TEST_CASE("many threads share a connection, and none waits for another") {
  const auto server = start();
  const auto store = connect(*server);
  std::thread waiting([&] { static_cast<void>(store->get("later", 10s)); });
  std::this_thread::sleep_for(50ms);
  REQUIRE(slowest_trip(*store, 200) < soon);
  REQUIRE(store->set("later", "").ok());
  waiting.join();
}

TEST_CASE("a request given up does not confuse the next ones") {
  const auto server = start();
  const auto store = connect(*server);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(store->get("k" + std::to_string(i), 5ms).status().code() == StatusCode::timeout);
    REQUIRE(store->set("k" + std::to_string(i), "").ok());
    REQUIRE(*store->add("n", 5) == std::int64_t{5} * (i + 1));
  }
}

TEST_CASE("timeouts of any size are served") {
  const auto server = start();
  const auto store = connect(*server);
  for (const Duration timeout : {Duration::min(), Duration(-1), Duration(0)}) {
    REQUIRE(store->get("k", timeout).status().code() == StatusCode::timeout);
  }
  std::thread setting([&] {
    std::this_thread::sleep_for(50ms);
    static_cast<void>(store->set("k", "v"));
  });
  const auto value = store->get("k", Duration::max());
  setting.join();
  REQUIRE(value.status().to_string() == "ok");
}

TEST_CASE("what a client leaves is set when it goes, unless the key is there") {
  const auto server = start();
  const auto waits = connect(*server);
  for (const bool is_there : {false, true}) {
    const std::string key = is_there ? "there" : "absent";
    auto goes = connect(*server);
    REQUIRE(goes->leave_will({"other", key}, {"", "gone"}).ok());
    if (is_there) REQUIRE(goes->set(key, "stays").ok());
    std::thread later([&] { goes.reset(); });
    const auto value = waits->get(key, soon);
    later.join();
    REQUIRE(value.status().to_string() == "ok");
    REQUIRE(*value == (is_there ? "stays" : "gone"));
    await_connections(*server, 1);
    REQUIRE(waits->get(key, soon).value() == *value);
  }
}

TEST_CASE("who waits for a rank hears that it was refused, if it named the job and does not come") {
  const auto server = start();
  const auto waits = connect(*server);
  REQUIRE(waits->leave_will({"verdict"}, {"lost"}, {.rank = 0, .size = 4}).ok());
  const auto refuse = [&](const std::string& job, int rank) {
    const auto refused = TcpStore::connect({.server = server->endpoint(),
                                            .credentials = {.job = job, .secret = "a guess"},
                                            .rank = rank,
                                            .timeout = 10s});
    REQUIRE_FALSE(refused.ok());
  };
  refuse("job 2", 1);   // which names another job
  refuse(ours.job, 0);  // which is there already
  refuse(ours.job, 4);  // which is none of this world
  REQUIRE(waits->get("verdict", 2500ms).status().code() == StatusCode::timeout);
  refuse(ours.job, 3);
  const auto verdict = waits->get("verdict", 10s);
  REQUIRE(verdict.status().to_string() == "ok");
  const Status fault = hocket::wire::decode_fault(*verdict);
  REQUIRE(fault.code() == StatusCode::permission_denied);
  REQUIRE(fault.peer() == 3);
  REQUIRE(std::string(fault.what()).starts_with("rank 3 at 127.0.0.1:"));
}

TEST_CASE("who waits for a rank hears from a member that it won't come") {
  const auto server = start();
  const auto waits = connect(*server);
  const auto knows = connect(*server);
  REQUIRE(waits->leave_will({"entry/0/verdict"}, {"lost"}, {.rank = 0, .size = 2}).ok());
  REQUIRE(knows->report_absence("entry/1/", 1, "ended").ok());
  REQUIRE(knows->report_absence("entry/0/", 0, "ended").ok());
  REQUIRE_FALSE(waits->check({"entry/0/verdict"}).value());
  REQUIRE(knows->report_absence("entry/0/", 1, "ended").ok());
  REQUIRE(waits->get("entry/0/verdict", 0s).value() == "ended");
}

TEST_CASE("strangers beyond a rate wait outside, and members get in through them") {
  const auto server = start();
  const auto store = connect(*server);
  std::atomic<int> refused = 0;
  std::atomic<bool> is_over = false;
  std::thread flood([&] {
    while (!is_over) {
      static_cast<void>(TcpStore::connect({.server = server->endpoint(),
                                           .credentials = {.job = ours.job, .secret = "a guess"},
                                           .timeout = 10s}));
      ++refused;
    }
  });
  const Instant start = monotonic_clock().now();
  while (monotonic_clock().now() - start < 2s) REQUIRE(store->ping().ok());
  REQUIRE(connect(*server)->ping().ok());
  const double seconds = std::chrono::duration<double>(monotonic_clock().now() - start).count();
  is_over = true;
  flood.join();
  const double bound =
      hocket::limits::strangers_at_once + (seconds + 1) * hocket::limits::strangers_per_second;
  REQUIRE(refused < bound);
}

TEST_CASE("a server that ends when idle serves its clients, and new ones, to the last") {
  const auto server = start();
  ConnectOptions options = to(*server);
  auto first = *TcpStore::connect(options);
  server->end_when_idle();
  auto second = *TcpStore::connect(options);
  REQUIRE(second->set("k", "v").ok());
  first.reset();
  REQUIRE(second->get("k").value() == "v");
  REQUIRE_FALSE(server->has_ended());
  REQUIRE(server->go_on());
  second.reset();
  const auto third = *TcpStore::connect(options);
  REQUIRE(third->get("k").value() == "v");
}

TEST_CASE("a server that ends when idle frees its port behind its last client") {
  const auto server = start();
  auto client = *TcpStore::connect(to(*server));
  server->end_when_idle();
  client.reset();
  const auto deadline = hocket::Deadline::after(hocket::monotonic_clock(), 60s);
  while (!server->has_ended()) {
    REQUIRE_FALSE(deadline.passed(hocket::monotonic_clock().now()));
    std::this_thread::sleep_for(1ms);
  }
  REQUIRE_FALSE(server->go_on());
  std::optional<hocket::Result<std::unique_ptr<Server>>> next;
  do {  // it has said so a moment before it closes
    REQUIRE_FALSE(deadline.passed(hocket::monotonic_clock().now()));
    next.emplace(Server::start({.listen = server->endpoint(), .credentials = ours}));
  } while (!next->ok());
}
