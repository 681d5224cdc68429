#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "hocket/communicator.hpp"
#include "hocket/store.hpp"

#include "net/socket.hpp"
#include "store/server.hpp"
#include "support/catch.hpp"
#include "support/store_clients.hpp"
#include "support/torch_clients.hpp"
#include "support/torch_words.hpp"

namespace words = hocket::testing::torch_words;
using namespace std::chrono_literals;
using hocket::Fd;
using hocket::StatusCode;
using hocket::store::Server;
using hocket::testing::await_connections;
using hocket::testing::closing_time;
using hocket::testing::connect_to;
using hocket::testing::in;
using hocket::testing::is_closed_within;
using hocket::testing::of_the_job;
using hocket::testing::serve_torch;
using hocket::testing::start_server;
using hocket::testing::stranger;
using hocket::testing::TorchSocket;
using words::byte;
using words::integer;
using words::text;
using words::texts;

TEST_CASE("clients of PyTorch and of Hocket share a store") {
  const auto server = serve_torch();
  auto mine = connect_to(*server, "the secret");
  REQUIRE(mine.ok());
  TorchSocket two(*server);
  TorchSocket one(*server, "");
  two.say(byte(words::set) + text("/k") + text("v"));
  REQUIRE(*(*mine)->get("/k") == "v");
  REQUIRE(one.ask(byte(words::get - 1) + text("/k"), 9) == text("v"));
  REQUIRE((*mine)->set("/k", "w").ok());
  REQUIRE(two.ask(byte(words::get) + text("/k"), 9) == text("w"));
}

TEST_CASE("a server serves no client of PyTorch unless it is told to") {
  const auto server = start_server({.credentials = of_the_job});
  TorchSocket client(*server);
  REQUIRE(client.is_closed());
}

TEST_CASE("a server that serves PyTorch still asks clients of Hocket for their proof") {
  const auto server = serve_torch({.credentials = of_the_job, .handshake_timeout = 200ms});
  REQUIRE(connect_to(*server, "another").status().code() == StatusCode::permission_denied);
  const Fd slow = stranger(*server);
  REQUIRE(hocket::net::send_all(slow.get(), "\xC8HOC", in(5s)).ok());
  REQUIRE(is_closed_within(slow, closing_time));
}

TEST_CASE("a connection of PyTorch may be silent for as long as it likes") {
  const auto server = serve_torch({.handshake_timeout = 50ms});
  TorchSocket silent(*server, "");
  std::this_thread::sleep_for(200ms);
  REQUIRE(server->connections() == 1);
  silent.say(words::greeting);
  REQUIRE(silent.is_in_step());
}

TEST_CASE("half a call holds up no other client") {
  const auto server = serve_torch();
  TorchSocket half(*server);
  half.say(byte(words::set) + text("/k").substr(0, 7));
  TorchSocket other(*server);
  REQUIRE(other.is_in_step());
}

TEST_CASE("a call that waits is answered once, when all of its keys are there") {
  const auto server = serve_torch();
  TorchSocket waiting(*server);
  TorchSocket setting(*server);
  waiting.say(byte(words::wait) + texts({"/a", "/b", "/a"}));
  setting.say(byte(words::set) + text("/a") + text("1"));
  setting.say(byte(words::set) + text("/b") + text("1"));
  REQUIRE(waiting.hear(1) == byte(0));
  REQUIRE(waiting.is_in_step());
}

TEST_CASE("a client that cancels its wait hears no more of it") {
  const auto server = serve_torch();
  TorchSocket waiting(*server);
  waiting.say(byte(words::wait) + texts({"/k"}));
  REQUIRE(waiting.ask(byte(words::cancel_wait), 1) == byte(1));
  TorchSocket(*server).say(byte(words::set) + text("/k") + text("1"));
  await_connections(*server, 1);
  REQUIRE(waiting.is_in_step());
}

TEST_CASE("a client of PyTorch 1.13 that gave up a wait stays in step") {
  const auto server = serve_torch();
  TorchSocket waiting(*server, "");
  waiting.say(byte(words::wait - 1) + texts({"/k"}));
  REQUIRE(waiting.ask(byte(words::add - 1) + text("/n") + integer(5), 8) == integer(5));
  TorchSocket(*server).say(byte(words::set) + text("/k") + text("1"));
  await_connections(*server, 1);
  REQUIRE(waiting.ask(byte(words::add - 1) + text("/n") + integer(5), 8) == integer(10));
}

TEST_CASE("a barrier of clients of PyTorch counts those that are still there") {
  const auto server = serve_torch();
  TorchSocket first(*server);
  const std::string call = byte(words::barrier) + text("/b") + integer(2);
  {
    TorchSocket leaves(*server);
    await_connections(*server, 2);  // else it may come after the next, and count
    leaves.say(call);
  }
  await_connections(*server, 1);
  first.say(call);
  REQUIRE(first.ask(byte(words::cancel_wait), 1) == byte(1));
  TorchSocket second(*server);
  first.say(call);
  REQUIRE(second.ask(call, 1) == byte(0));
  REQUIRE(first.hear(1) == byte(0));
}

TEST_CASE("a call that can't be answered ends that connection alone") {
  const auto server = serve_torch();
  TorchSocket other(*server);
  TorchSocket bad(*server);
  bad.say(byte(words::set) + text("/k") + text("no number"));
  bad.say(byte(words::add) + text("/k") + integer(1));
  REQUIRE(bad.is_closed());
  TorchSocket unknown(*server);
  unknown.say(byte(99));
  REQUIRE(unknown.is_closed());
  TorchSocket disagreeing(*server);
  TorchSocket waiting(*server);
  waiting.say(byte(words::barrier) + text("/b") + integer(3));
  REQUIRE(other.is_in_step());
  disagreeing.say(byte(words::barrier) + text("/b") + integer(2));
  REQUIRE(disagreeing.is_closed());
  REQUIRE(waiting.is_closed());
  REQUIRE(other.ask(byte(words::get) + text("/k"), 17) == text("no number"));
}

TEST_CASE("an answer that is larger than any message comes whole") {
  const auto server = serve_torch();
  const std::string value(32 << 20, 'v');
  TorchSocket client(*server);
  client.say(byte(words::set) + text("/k") + text(value));
  client.say(byte(words::multi_get) + texts({"/k", "/k", "/k", "/k"}));
  for (int i = 0; i < 4; ++i) REQUIRE(client.hear(8 + value.size()) == text(value));
  REQUIRE(client.is_in_step());
}

TEST_CASE("a large value comes whole") {
  const auto server = serve_torch();
  const std::string value(24 << 20, 'v');
  TorchSocket client(*server);
  client.say(byte(words::set) + text("/k") + text(value));
  REQUIRE(client.ask(byte(words::get) + text("/k"), 8 + value.size()) == text(value));
}

TEST_CASE("a client of Hocket can speak the protocol of PyTorch") {
  const auto server = serve_torch();
  const auto url = "torch://" + server->endpoint().to_string();
  const auto store = hocket::open_store({.url = url, .timeout = 10s});
  store->set("k", "v");
  REQUIRE(store->get("k") == "v");
  REQUIRE(*(*connect_to(*server, "the secret"))->get("/k") == "v");
  REQUIRE(store->add("n", 3) == 3);
  REQUIRE(store->check(std::vector<std::string>{"k", "n"}));
  REQUIRE_FALSE(store->compare_set("absent", "x", "y").value.has_value());
  REQUIRE(store->compare_set("absent", "", "y").is_set);
  REQUIRE(store->compare_set("absent", "x", "z").value == "y");
  REQUIRE(store->num_keys() == 3);
  REQUIRE(store->delete_key("k"));
  REQUIRE_THROWS_AS(store->get("k", 20ms), hocket::Timeout);
  // The server ends the connection then; the next call makes another.
  store->set("k", "no number");
  REQUIRE_THROWS_AS(store->add("k", 1), hocket::PeerLost);
  REQUIRE(store->get("k") == "no number");
  REQUIRE_THROWS_AS(hocket::join({.url = url}), hocket::InvalidArgument);
}

TEST_CASE("PyTorch is served at a named address, and without TLS") {
  for (const char* host : {"", "0.0.0.0", "::"}) {
    const auto server = Server::start(
        {.listen = {.host = host, .port = 0}, .credentials = of_the_job, .serves_torch = true});
    REQUIRE(server.status().code() == StatusCode::permission_denied);
  }
  const auto server = Server::start({.credentials = of_the_job,
                                     .tls = {.mode = hocket::wire::TlsMode::psk},
                                     .serves_torch = true});
  REQUIRE(server.status().code() == StatusCode::unsupported);
}
