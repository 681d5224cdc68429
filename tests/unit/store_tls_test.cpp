// A store over TLS: what it serves, whom it refuses, and what strangers can do to it.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/socket.h>

#include "base/rng.hpp"
#include "net/socket.hpp"
#include "store/channel.hpp"
#include "store/server.hpp"
#include "store/tcp_store.hpp"
#include "support/catch.hpp"
#include "support/store_clients.hpp"
#include "support/tls.hpp"
#include "wire/frame.hpp"
#include "wire/handshake.hpp"

using namespace std::chrono_literals;
using Catch::Matchers::Contains;
using hocket::Deadline;
using hocket::Duration;
using hocket::Fd;
using hocket::Instant;
using hocket::monotonic_clock;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::Channel;
using hocket::store::Kind;
using hocket::store::Request;
using hocket::store::Server;
using hocket::store::ServerOptions;
using hocket::store::Store;
using hocket::store::TcpStore;
using hocket::testing::await_connections;
using hocket::testing::Certificates;
using hocket::testing::has_tls;
using hocket::testing::in;
using hocket::testing::is_closed_within;
using hocket::testing::slowest_trip;
using hocket::testing::start_server;
using hocket::testing::stranger;
using hocket::wire::Credentials;
using hocket::wire::TlsContext;
using hocket::wire::TlsMode;
using hocket::wire::TlsOptions;

namespace {

const Credentials our_job = {.job = "job 1", .secret = "open sesame"};
const TlsOptions by_secret = {.mode = TlsMode::psk};
constexpr Duration a_while = 5s;  // on a busy machine

std::unique_ptr<Server> serve(ServerOptions options = {.credentials = our_job, .tls = by_secret}) {
  return start_server(std::move(options));
}

std::unique_ptr<TcpStore> connect_to(const Server& server, const TlsOptions& tls = by_secret) {
  auto store = TcpStore::connect(
      {.server = server.endpoint(), .credentials = our_job, .tls = tls, .timeout = 30s});
  REQUIRE(store.status().to_string() == "ok");
  return std::move(*store);
}

/// How a client is refused: at once, and not by the end of its time.
Status refusal(const Server& server, const Credentials& credentials, const TlsOptions& tls) {
  const Instant start = monotonic_clock().now();
  const Status status =
      TcpStore::connect(
          {.server = server.endpoint(), .credentials = credentials, .tls = tls, .timeout = 60s})
          .status();
  INFO(status.to_string());
  CHECK_FALSE(status.ok());
  CHECK(monotonic_clock().now() - start < 2 * a_while);
  if (!credentials.secret.empty()) {
    CHECK(status.to_string().find(credentials.secret) == std::string::npos);
  }
  return status;
}

/// A client that says what it likes, over TLS.
class RawClient {
 public:
  explicit RawClient(const Server& server)
      : context_(TlsContext::make(TlsContext::Role::client, by_secret, our_job).value()),
        channel_(Channel::open(stranger(server), context_.get(), in(a_while)).value()) {}

  void prove_itself() {
    hocket::wire::Nonce nonce{};
    hocket::random_bytes(nonce);
    const std::string binding = channel_->binding().value();
    hocket::wire::ClientHandshake handshake(our_job, hocket::wire::Purpose::store, nonce, binding);
    send(handshake.hello());
    const auto challenge = channel_->receive_exactly(hocket::wire::challenge_bytes, in(a_while));
    REQUIRE(challenge.status().to_string() == "ok");
    send(handshake.on_challenge(*challenge).value());
    const auto answer = channel_->receive_exactly(hocket::wire::answer_bytes, in(a_while));
    REQUIRE(answer.status().to_string() == "ok");
    REQUIRE(handshake.on_answer(*answer).ok());
  }

  void send(std::string_view bytes) { REQUIRE(channel_->send(bytes, in(a_while)).ok()); }
  [[nodiscard]] Channel& channel() { return *channel_; }

 private:
  std::unique_ptr<TlsContext> context_;
  std::unique_ptr<Channel> channel_;
};

std::string framed(const Request& request, std::uint64_t id) {
  std::string bytes;
  const std::size_t start = hocket::wire::open_frame(bytes);
  hocket::store::encode(request, bytes);
  hocket::wire::close_frame(bytes, start, id);
  return bytes;
}

/// What a client says first.
std::string client_hello() {
  const auto context = TlsContext::make(TlsContext::Role::client, by_secret, our_job).value();
  return context->new_filter().value()->take_output();
}

std::string pattern(std::size_t bytes, int seed) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>(i * 131 + (i >> 8) + static_cast<std::size_t>(seed));
  }
  return text;
}

/// What went wrong, or nothing.
std::string use(Store& store, int who) {
  const std::string key = "k" + std::to_string(who);
  for (int i = 0; i < 100; ++i) {
    if (const auto sum = store.add("sum", 1); !sum.ok()) return sum.status().to_string();
  }
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{5000}, std::size_t{3} << 20}) {
    const std::string value = pattern(bytes, who);
    if (Status status = store.set(key, value); !status.ok()) return status.to_string();
    const auto found = store.get(key);
    if (!found.ok()) return found.status().to_string();
    if (*found != value) return "another value than was set";
  }
  return {};
}

/// Many threads on one connection, and one that waits there all the while.
void require_service(const TlsOptions& of_server, const TlsOptions& of_client) {
  constexpr int users = 6;
  const auto server = serve({.credentials = our_job, .tls = of_server});
  const auto store = connect_to(*server, of_client);
  std::vector<std::string> failures(users);
  std::string awaited;
  std::thread waiting([&] {
    const auto value = store->get("last", 60s);
    awaited = value.ok() ? *value : value.status().to_string();
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < users; ++i) {
    threads.emplace_back([&, i] { failures[static_cast<std::size_t>(i)] = use(*store, i); });
  }
  for (std::thread& thread : threads) thread.join();
  const Status status = store->set("last", "here");
  waiting.join();
  CHECK(status.to_string() == "ok");
  CHECK(awaited == "here");
  for (const std::string& failure : failures) CHECK(failure.empty());
  CHECK(store->add("sum", 0).value() == users * 100);
  const auto copy = store->clone();
  REQUIRE(copy.status().to_string() == "ok");
  REQUIRE((*copy)->get("k1")->size() == std::size_t{3} << 20);
}

/// Has a certificate, but no secret: ends the TLS of one client here, and passes what it hears on
/// to the true server, over TLS of its own.
class Middleman {
 public:
  Middleman(const Server& server, const TlsOptions& tls)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
        to_client_(TlsContext::make(TlsContext::Role::server, tls, {}).value()),
        to_server_(TlsContext::make(TlsContext::Role::client, tls, {}).value()),
        channel_(Channel::open(stranger(server), to_server_.get(), in(a_while)).value()) {
    hocket::net::Address address = hocket::net::resolve({"127.0.0.1", 0}, in(a_while))->front();
    REQUIRE(::bind(listener_.get(), address.get(), address.bytes) == 0);
    REQUIRE(::listen(listener_.get(), 1) == 0);
    thread_ = std::thread([this] { carry(); });
  }
  Middleman(const Middleman&) = delete;
  Middleman& operator=(const Middleman&) = delete;
  ~Middleman() { thread_.join(); }

  [[nodiscard]] hocket::net::Endpoint endpoint() const {
    return hocket::net::local_address(listener_.get()).endpoint();
  }

 private:
  void carry() {
    const Fd client(::accept(listener_.get(), nullptr, nullptr));
    const auto filter = to_client_->new_filter().value();
    std::vector<char> bytes(4096);
    for (;;) {
      const auto received = hocket::net::receive_some(client.get(), bytes, in(a_while));
      std::string words;
      if (!received.ok() || !filter->receive({bytes.data(), *received}, words).ok()) return;
      if (!words.empty()) {
        static_cast<void>(channel_->send(words, in(a_while)));
        const auto answer = channel_->receive(in(a_while));
        if (!answer.ok() || !filter->send(*answer).ok()) return;
      }
      static_cast<void>(hocket::net::send_all(client.get(), filter->take_output(), in(a_while)));
    }
  }

  Fd listener_;
  std::unique_ptr<TlsContext> to_client_;
  std::unique_ptr<TlsContext> to_server_;
  std::unique_ptr<Channel> channel_;
  std::thread thread_;
};

}  // namespace

TEST_CASE("a store is served over TLS by the job's secret") {
  if (!has_tls()) return;
  require_service(by_secret, by_secret);
}

TEST_CASE("a store is served over TLS by certificates") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  require_service(certificates.options("one", "ours"), certificates.options("two", "ours"));
}

TEST_CASE("where one side alone has TLS, both are told at once") {
  if (!has_tls()) return;
  const auto encrypted = serve();
  const Status without = refusal(*encrypted, our_job, {});
  REQUIRE(without.code() == StatusCode::protocol_error);
  REQUIRE_THAT(without.to_string(), Contains("the server asks for TLS") && Contains("HOCKET_TLS"));

  const auto plain = serve({.credentials = our_job});
  const Status with = refusal(*plain, our_job, by_secret);
  REQUIRE(with.code() == StatusCode::protocol_error);
  REQUIRE_THAT(with.to_string(), Contains("the server speaks to us without TLS"));
}

TEST_CASE("over TLS, too, another secret or job is refused") {
  if (!has_tls()) return;
  const auto server = serve();
  REQUIRE(refusal(*server, {"job 1", "open barley"}, by_secret).code() ==
          StatusCode::permission_denied);
  REQUIRE(refusal(*server, {"job 2", "open sesame"}, by_secret).code() ==
          StatusCode::permission_denied);
  await_connections(*server, 0);
  REQUIRE(connect_to(*server)->ping().ok());
}

TEST_CASE("a certificate does not make up for the secret") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  const auto server = serve({.credentials = our_job, .tls = certificates.options("one", "ours")});
  const Status status =
      refusal(*server, {"job 1", "open barley"}, certificates.options("two", "ours"));
  REQUIRE(status.code() == StatusCode::permission_denied);
  REQUIRE_THAT(status.to_string(), Contains("another secret"));
}

TEST_CASE("who has a certificate and no secret can't stand between two who have both") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  const auto honest = certificates.options("one", "ours");
  const auto server = serve({.credentials = our_job, .tls = honest});
  const Middleman middleman(*server, certificates.options("two", "ours"));
  const Status status =
      TcpStore::connect(
          {.server = middleman.endpoint(), .credentials = our_job, .tls = honest, .timeout = 20s})
          .status();
  REQUIRE(status.code() == StatusCode::permission_denied);
  REQUIRE_THAT(status.to_string(), Contains("another secret"));
}

TEST_CASE("a certificate of another authority is refused, the client's and the server's") {
  if (!has_tls()) return;
  const Certificates certificates;
  if (!certificates.are_made()) return;
  const auto spy = certificates.options("spy", "ours");
  const auto honest = certificates.options("two", "ours");
  const auto server = serve({.credentials = our_job, .tls = honest});
  const Status as_client = refusal(*server, our_job, spy);
  REQUIRE(as_client.code() == StatusCode::permission_denied);
  REQUIRE_THAT(as_client.to_string(), Contains("alert unknown ca"));

  const auto false_server = serve({.credentials = our_job, .tls = spy});
  const Status as_server = refusal(*false_server, our_job, honest);
  REQUIRE(as_server.code() == StatusCode::permission_denied);
  REQUIRE_THAT(as_server.to_string(), Contains("certificate verify failed"));
}

TEST_CASE("TLS by secret without a secret fails before anything is tried") {
  if (!has_tls()) return;
  const Status serving = Server::start({.tls = by_secret}).status();
  REQUIRE(serving.code() == StatusCode::invalid_argument);
  REQUIRE_THAT(serving.to_string(), Contains("needs a secret"));
  const auto server = serve();
  const Status asking = refusal(*server, {.job = "job 1"}, by_secret);
  REQUIRE(asking.code() == StatusCode::invalid_argument);
  REQUIRE_THAT(asking.to_string(), Contains("needs a secret"));
}

TEST_CASE("who stalls in TLS's handshake is dropped, and holds up nobody") {
  if (!has_tls()) return;
  const auto server = serve({.credentials = our_job, .tls = by_secret, .handshake_timeout = 1s});
  const auto store = connect_to(*server);
  const std::string hello = client_hello();
  const Instant begun = monotonic_clock().now();
  const Fd half = stranger(*server);
  REQUIRE(hocket::net::send_all(half.get(), hello.substr(0, hello.size() / 2), in(a_while)).ok());
  const Fd whole = stranger(*server);  // but never answers the server's part
  REQUIRE(hocket::net::send_all(whole.get(), hello, in(a_while)).ok());
  RawClient silent(*server);  // is through with TLS, and then says nothing
  silent.send("\xC8");
  REQUIRE(slowest_trip(*store, 50) < a_while);
  REQUIRE(is_closed_within(half, a_while));
  REQUIRE(is_closed_within(whole, a_while));
  REQUIRE(silent.channel().receive(in(a_while)).status().code() == StatusCode::peer_lost);
  REQUIRE(monotonic_clock().now() - begun > 800ms);
  await_connections(*server, 1);
  REQUIRE(connect_to(*server)->ping().ok());
}

TEST_CASE("a flood of half-done TLS handshakes pushes out strangers, not clients") {
  if (!has_tls()) return;
  const auto server = serve({.credentials = our_job, .tls = by_secret, .strangers_max = 16});
  const auto store = connect_to(*server);
  const std::string hello = client_hello();
  std::vector<Fd> flood;
  for (int i = 0; i < 200; ++i) {
    flood.push_back(stranger(*server));
    // Refused already when others came in between.
    static_cast<void>(hocket::net::send_all(
        flood.back().get(), hello.substr(0, i % 2 == 0 ? hello.size() / 2 : hello.size()),
        in(a_while)));
  }
  REQUIRE(slowest_trip(*store, 200) < a_while);
  REQUIRE(connect_to(*server)->ping().ok());
  REQUIRE(is_closed_within(flood.front(), a_while));
  REQUIRE(server->connections() <= 1 + 16);
}

TEST_CASE("garbage in place of TLS, or inside it, ends that connection only") {
  if (!has_tls()) return;
  const auto server = serve();
  const auto store = connect_to(*server);
  for (const std::string_view bytes :
       {std::string_view("GET / HTTP/1.1\r\n\r\n"), std::string_view("\x17\x03\x03\0\x01x", 6),
        std::string_view("\x16\x03\x01\xff\xff\x01", 6), std::string_view("\xff\xff\xff\xff")}) {
    const Fd socket = stranger(*server);
    REQUIRE(hocket::net::send_all(socket.get(), bytes, in(a_while)).ok());
    REQUIRE(is_closed_within(socket, a_while));
  }
  RawClient inside(*server);
  inside.send("GET / HTTP/1.1\r\n\r\n");
  REQUIRE(inside.channel().receive(in(a_while)).status().code() == StatusCode::peer_lost);
  RawClient member(*server);
  member.prove_itself();
  member.send(std::string_view("\xff\xff\xff\xff\0\0\0\0\0\0\0\0", 12));
  REQUIRE(member.channel().receive(in(a_while)).status().code() == StatusCode::peer_lost);
  await_connections(*server, 1);
  REQUIRE(store->ping().ok());
}

TEST_CASE("a server that is full says so to clients that speak TLS") {
  if (!has_tls()) return;
  const auto server = serve({.credentials = our_job, .tls = by_secret, .connections_max = 1});
  const auto store = connect_to(*server);
  const Status status =
      TcpStore::connect(
          {.server = server->endpoint(), .credentials = our_job, .tls = by_secret, .timeout = 1s})
          .status();
  REQUIRE(status.code() == StatusCode::timeout);
  REQUIRE_THAT(status.to_string(), Contains("as many connections as it takes"));
  REQUIRE(store->ping().ok());
}

TEST_CASE("who does not read his replies over TLS is not served further, and holds up nobody") {
  if (!has_tls()) return;
  constexpr std::size_t replies = 60;
  const auto server = serve();
  const auto store = connect_to(*server);
  REQUIRE(store->set("large", pattern(1 << 20, 1)).ok());
  RawClient greedy(*server);
  greedy.prove_itself();
  std::string requests;
  for (std::size_t i = 0; i < replies; ++i) {
    requests += framed({.kind = Kind::get, .keys = {"large"}, .timeout = 1s}, i);
  }
  greedy.send(requests + framed({.kind = Kind::set, .keys = {"end"}, .values = {""}}, replies));
  REQUIRE(slowest_trip(*store, 50) < a_while);
  REQUIRE_FALSE(*store->check({"end"}));
  std::size_t total = 0;
  while (total < replies << 20) {
    const auto more = greedy.channel().receive(in(20s));
    REQUIRE(more.status().to_string() == "ok");
    total += more->size();
  }
  REQUIRE(store->wait({"end"}, 10s).ok());
}

TEST_CASE("when a server ends, those who wait over TLS are told at once") {
  if (!has_tls()) return;
  auto server = serve();
  const auto store = connect_to(*server);
  Status status;
  Duration time = 0s;
  std::thread waiting([&] {
    const Instant begun = monotonic_clock().now();
    status = store->get("never", 60s).status();
    time = monotonic_clock().now() - begun;
  });
  std::this_thread::sleep_for(100ms);
  server.reset();
  waiting.join();
  REQUIRE(status.code() == StatusCode::peer_lost);
  REQUIRE(time < 100ms + a_while);
}
