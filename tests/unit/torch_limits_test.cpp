// What clients of PyTorch's TCPStore may cost a server, however they behave, and what odd servers
// may cost a client.
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <malloc.h>
#include <poll.h>
#include <sys/socket.h>

#include "hocket/store.hpp"

#include "link/sockets.hpp"
#include "net/socket.hpp"
#include "store/server.hpp"
#include "store/session.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/store_clients.hpp"
#include "support/torch_clients.hpp"
#include "support/torch_words.hpp"

namespace words = hocket::testing::torch_words;
using namespace std::chrono_literals;
using hocket::Fd;
using hocket::StatusCode;
using hocket::testing::await_connections;
using hocket::testing::closing_time;
using hocket::testing::connect_to;
using hocket::testing::in;
using hocket::testing::is_closed_within;
using hocket::testing::of_the_job;
using hocket::testing::serve_torch;
using hocket::testing::stranger;
using hocket::testing::TorchSocket;
using words::byte;
using words::integer;
using words::text;
using words::texts;

namespace {

/// Answers every request at once, and keeps the turns that sessions ask for.
class TurnKeeper final : public hocket::store::SessionHost {
 public:
  using Session = hocket::store::Session;

  [[nodiscard]] const hocket::wire::Credentials& credentials() const noexcept override {
    return of_the_job;
  }
  [[nodiscard]] const hocket::wire::TlsContext* tls() const noexcept override { return nullptr; }
  [[nodiscard]] std::span<char> scratch() noexcept override { return scratch_; }
  [[nodiscard]] bool hold(std::ptrdiff_t /*bytes*/, bool /*is_of_torch*/) noexcept override {
    return true;
  }
  [[nodiscard]] bool serves_torch() const noexcept override { return true; }
  void end_silence(Session& /*session*/) override {}
  void await_proof(Session& /*session*/) override {}
  void admit(Session& /*session*/) override {}
  void serve(Session& session, std::uint64_t id, hocket::store::Request /*request*/) override {
    session.reply(id, {});
  }
  void withdraw(Session& /*session*/, std::uint64_t /*id*/) override {}
  void await_turn(std::shared_ptr<Session> session) override {
    turns.push_back(std::move(session));
  }
  void settle(std::shared_ptr<Session> session) override { session->turn(); }
  void leave(Session& /*session*/, const hocket::Status& /*why*/) noexcept override {}

  std::vector<std::shared_ptr<Session>> turns;

 private:
  std::vector<char> scratch_ = std::vector<char>(4096);
};

/// Memory of the heap that is in use. Sanitizers have heaps of their own, of which it knows
/// nothing.
std::size_t heap_bytes() {
  const auto heap = ::mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

/// Greets clients as a server of PyTorch does, answers one call with these bytes, and says no more.
class OddServer {
 public:
  explicit OddServer(std::string answer) : answer_(std::move(answer)) {
    const auto addresses = hocket::net::resolve({"127.0.0.1", 0}, in(5s));
    REQUIRE(addresses.ok());
    auto listener = hocket::link::listen_at(addresses->front());
    REQUIRE(listener.ok());
    listener_ = std::move(*listener);
    thread_ = std::thread([this] { serve(); });
  }
  OddServer(const OddServer&) = delete;
  OddServer& operator=(const OddServer&) = delete;
  ~OddServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] std::string url() const {
    return "torch://" + hocket::net::local_address(listener_.get()).endpoint().to_string();
  }

 private:
  void serve() {
    pollfd readable = {listener_.get(), POLLIN, 0};
    while (::poll(&readable, 1, 5000) == 1 && (readable.revents & POLLHUP) == 0) {
      const Fd client = hocket::link::accept_next(listener_.get());
      if (!client) return;
      const auto hello =
          hocket::net::receive_exactly(client.get(), words::greeting.size() + 5, in(5s));
      if (!hello.ok()) continue;
      std::vector<char> call(4096);
      if (!hocket::net::send_all(client.get(), hello->substr(hello->size() - 4), in(5s)).ok() ||
          !hocket::net::receive_some(client.get(), call, in(5s)).ok()) {
        continue;
      }
      static_cast<void>(hocket::net::send_all(client.get(), answer_, in(5s)));
      ::shutdown(client.get(), SHUT_WR);
      while (hocket::net::receive_some(client.get(), call, in(5s)).ok()) continue;
    }
  }

  const std::string answer_;
  Fd listener_;
  std::thread thread_;
};

/// How a call fails if the server answers with these bytes; ok if it doesn't.
template <class Call>
StatusCode code_of(const std::string& answer, const Call& call) {
  const OddServer server(answer);
  const auto store = hocket::open_store({.url = server.url(), .timeout = 5s});
  try {
    call(*store);
  } catch (const hocket::Error& error) {
    return error.code();
  }
  return StatusCode::ok;
}

}  // namespace

TEST_CASE("what a client of PyTorch said before it left is done") {
  const auto server = serve_torch();
  const auto mine = connect_to(*server, "the secret");
  REQUIRE(mine.ok());
  constexpr std::size_t count = 10'000;  // many turns of the server
  std::string calls;
  for (std::size_t i = 0; i < count; ++i) calls += byte(words::append) + text("/k") + text("x");
  calls += byte(words::set) + text("/end") + text("");
  TorchSocket(*server).say(calls);
  REQUIRE((*mine)->get("/end", closing_time).status().to_string() == "ok");
  REQUIRE((*mine)->get("/k")->size() == count);
}

TEST_CASE("a call that fills the server's first read is done, though its client leaves at once") {
  const auto server = serve_torch();
  const auto mine = connect_to(*server, "the secret");
  REQUIRE(mine.ok());
  std::vector<std::string> keys;
  for (int i = 10; i < 30; ++i) {
    keys.push_back("/" + std::to_string(i));
    const std::string all =
        words::greeting + byte(words::set) + text(keys.back()) + text(std::string(2023, 'v'));
    REQUIRE(all.size() == 2048);
    const TorchSocket leaves(*server, all);
  }
  REQUIRE((*mine)->wait(keys, closing_time).to_string() == "ok");
}

TEST_CASE("a client of PyTorch that sends ahead awaits one turn, and is not read meanwhile") {
  TurnKeeper host;
  asio::io_context io;
  const auto addresses = hocket::net::resolve({"127.0.0.1", 0}, in(5s));
  REQUIRE(addresses.ok());
  const auto listener = hocket::link::listen_at(addresses->front());
  REQUIRE(listener.ok());
  const auto client = hocket::net::connect_to(hocket::net::local_address(listener->get()), in(5s));
  REQUIRE(client.ok());
  pollfd readable = {listener->get(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, 5000) == 1);
  Fd accepted = hocket::link::accept_next(listener->get());
  const int socket = accepted.get();
  const auto session = std::make_shared<hocket::store::Session>(io, std::move(accepted), 0, host);
  session->start();
  std::string pings;
  for (int i = 0; i < 40; ++i) pings += byte(words::ping) + "ping";
  for (int round = 0; round < 3; ++round) {
    const std::string bytes = (round == 0 ? words::greeting : std::string()) + pings;
    REQUIRE(hocket::net::send_all(client->get(), bytes, in(5s)).ok());
    io.restart();
    io.poll();
    REQUIRE(host.turns.size() == 1);
  }
  char unread = 0;
  REQUIRE(::recv(socket, &unread, 1, MSG_PEEK | MSG_DONTWAIT) == 1);
  while (!host.turns.empty()) {
    for (const auto& each : std::exchange(host.turns, {})) each->resume();
    io.restart();
    io.poll();
  }
  REQUIRE(hocket::net::receive_exactly(client->get(), std::size_t{3} * 40 * 4, in(5s)).ok());
  session->close(hocket::Status(StatusCode::aborted, "the test ends"));
  io.restart();
  io.poll();
}

TEST_CASE("answers that a client of PyTorch does not read cost little memory") {
  const auto server = serve_torch();
  const std::string value(16'000, 'v');
  constexpr std::size_t count = 4000;
  TorchSocket other(*server);
  other.say(byte(words::set) + text("/k") + text(value));
  REQUIRE(other.is_in_step());
  const std::string call = byte(words::multi_get) + texts(std::vector<std::string>(count, "/k"));
  const std::size_t before = heap_bytes();
  std::vector<TorchSocket> greedy;
  for (int i = 0; i < 4; ++i) greedy.emplace_back(*server).say(call);
  for (TorchSocket& each : greedy) REQUIRE(each.hear(8) == integer(value.size()));
  REQUIRE(other.is_in_step());
  REQUIRE(heap_bytes() < before + (std::size_t{64} << 20));  // copied for each it would be 256 MB
  // A client that reads gets the whole answer.
  const std::string rest = greedy.front().hear(count * (8 + value.size()) - 8);
  REQUIRE(rest.ends_with(text(value)));
  REQUIRE(greedy.front().is_in_step());
}

TEST_CASE("calls that wait until a client of PyTorch reads count as what it holds") {
  const auto server = serve_torch();
  TorchSocket other(*server);
  other.say(byte(words::set) + text("/k") +
            text(std::string(24 << 20, 'v')));  // more than a socket takes
  REQUIRE(other.is_in_step());
  std::vector<std::string> keys(100'000, "/" + std::string(500, 'x'));
  keys.front() = "/k";
  const std::string call = words::greeting + byte(words::multi_get) + texts(keys);
  std::vector<Fd> greedy;
  int served = 0;
  for (int i = 0; i < 8; ++i) {
    const Fd& client = greedy.emplace_back(stranger(*server));
    // Either may fail: a client that would hold too much is sent away.
    const bool is_sent = hocket::net::send_all(client.get(), call, in(5s)).ok();
    if (is_sent && hocket::net::receive_exactly(client.get(), 8, in(5s)).ok()) ++served;
  }
  REQUIRE(served > 2);
  REQUIRE(served < 6);  // of 50 MB each
  REQUIRE(other.is_in_step());
}

TEST_CASE("a large call of a client of PyTorch costs no memory once it is done") {
  const auto server = serve_torch();
  const std::string large =
      byte(words::compare_set) + text("/k") + text(std::string(32 << 20, 'x')) + text("w");
  TorchSocket other(*server);
  other.say(byte(words::set) + text("/k") + text("v"));
  REQUIRE(other.is_in_step());
  const std::size_t before = heap_bytes();
  std::vector<TorchSocket> clients;
  SECTION("what was expected is forgotten") {
    for (int i = 0; i < 3; ++i) {
      REQUIRE(clients.emplace_back(*server).ask(large, 9) == text("v"));
    }
  }
  SECTION("its place goes, though another call has begun") {
    const std::string half =
        byte(words::set) + text("/l") + integer(1 << 20) + std::string(100'000, 'x');
    for (int i = 0; i < 3; ++i) {
      TorchSocket& client = clients.emplace_back(*server);
      client.say(large + byte(words::ping) + "ping" + half);
      REQUIRE(client.hear(13) == text("v") + "ping");
    }
  }
  REQUIRE(other.is_in_step());
  REQUIRE(heap_bytes() < before + (std::size_t{32} << 20));  // if it were kept it would be 96 MiB
}

TEST_CASE("silent connections make room before those that prove who they are") {
  const auto server = serve_torch({.credentials = of_the_job, .connections_max = 2});
  const Fd silent = stranger(*server);
  const Fd member = stranger(*server);
  REQUIRE(hocket::net::send_all(member.get(), "\xC8HOC", in(5s)).ok());
  std::this_thread::sleep_for(100ms);  // until the server has read it
  const Fd third = stranger(*server);
  REQUIRE(is_closed_within(silent, closing_time));
  await_connections(*server, 2);
}

TEST_CASE("a child does not use its parent's connection to a TCPStore") {
  const auto server = serve_torch();
  const auto store =
      hocket::open_store({.url = "torch://" + server->endpoint().to_string(), .timeout = 10s});
  store->set("k", "v");
  hocket::testing::Child child([&] {
    // In the child, another file may have the number of that connection.
    int pairs[16][2];
    for (auto& pair : pairs) {
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) != 0) return false;
    }
    bool is_refused = false;
    try {
      store->set("k", "w", 100ms);
    } catch (const hocket::InvalidArgument& error) {
      is_refused = std::string_view(error.what()).find("fork") != std::string_view::npos;
    } catch (const hocket::Error&) {
      return false;
    }
    char received = 0;
    for (const auto& pair : pairs) {
      for (const int end : pair) {
        if (::recv(end, &received, 1, 0) > 0) return false;
      }
    }
    return is_refused;
  });
  REQUIRE(child.ended_well());
  REQUIRE(store->get("k") == "v");
}

TEST_CASE("a client notices a server of PyTorch that answers with garbage or half an answer") {
  const auto check = [](hocket::Store& store) {
    static_cast<void>(store.check(std::vector<std::string>{"k"}));
  };
  const auto add = [](hocket::Store& store) { static_cast<void>(store.add("n", 1)); };
  const auto get = [](hocket::Store& store) { static_cast<void>(store.get("k")); };
  CHECK(code_of(byte(0), check) == StatusCode::ok);
  CHECK(code_of(byte(7), check) == StatusCode::protocol_error);
  CHECK(code_of(integer(5).substr(0, 3), add) == StatusCode::peer_lost);
  CHECK(code_of(byte(0) + integer(~0ULL), get) == StatusCode::protocol_error);
  CHECK(code_of(byte(0) + text("value").substr(0, 10), get) == StatusCode::peer_lost);
}
