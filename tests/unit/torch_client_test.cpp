#include "store/torch_client.hpp"

#include <string>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "store/keyspace.hpp"
#include "support/catch.hpp"
#include "support/torch_words.hpp"
#include "wire/handshake.hpp"

namespace words = hocket::testing::torch_words;
using hocket::Instant;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::Keyspace;
using hocket::store::Kind;
using hocket::store::Reply;
using hocket::store::Request;
using hocket::store::TorchCall;
using hocket::store::TorchClient;
using words::byte;
using words::integer;
using words::text;
using words::texts;

namespace {

/// The only call in these bytes.
TorchCall call_of(TorchClient& client, const std::string& bytes) {
  client.append(bytes);
  auto call = client.next();
  REQUIRE(call.status().to_string() == "ok");
  REQUIRE(call->has_value());
  REQUIRE(client.bytes() == 0);
  return std::move(**call);
}

Status failure_of(const std::string& bytes) {
  TorchClient client;
  client.append(bytes);
  return client.next().status();
}

/// A client and a store that serves it. A call that waits has no answer.
struct Served {
  TorchClient client;
  Keyspace keyspace;

  std::string ask(const std::string& bytes) {
    TorchCall call = call_of(client, bytes);
    std::string all;
    if (call.requests.empty()) add_answer(call, {}, all);
    for (Request& request : call.requests) {
      const auto reply = keyspace.execute(1, std::move(request), Instant());
      if (reply) add_answer(call, *reply, all);
    }
    return all;
  }

  static void add_answer(const TorchCall& call, const Reply& reply, std::string& to) {
    const auto answer = make_answer(call, reply);
    REQUIRE(answer.status().to_string() == "ok");
    to += answer->head;
    if (answer->value != nullptr) to += *answer->value;
  }
};

}  // namespace

TEST_CASE("a client of PyTorch starts unlike one of Hocket") {
  REQUIRE(TorchClient::starts_with(words::greeting.front()));
  REQUIRE(TorchClient::starts_with('\x08'));
  REQUIRE_FALSE(TorchClient::starts_with('\x09'));
  REQUIRE_FALSE(TorchClient::starts_with(hocket::wire::magic.front()));
}

TEST_CASE("the calls of PyTorch 2 are served") {
  Served served;
  REQUIRE(served.ask(words::greeting + byte(words::ping) + "\1\2\3\4") == "\1\2\3\4");
  REQUIRE(served.ask(byte(words::set) + text("/k") + text("v")).empty());
  REQUIRE(served.ask(byte(words::get) + text("/k")) == text("v"));
  REQUIRE(served.ask(byte(words::get) + text("/absent")) == text(""));
  REQUIRE(served.ask(byte(words::append) + text("/k") + text("w")).empty());
  REQUIRE(served
              .ask(byte(words::multi_set) + integer(2) + text("/a") + text("1") + text("/b") +
                   text("2"))
              .empty());
  REQUIRE(served.ask(byte(words::multi_get) + texts({"/k", "/absent", "/b"})) ==
          text("vw") + text("") + text("2"));
  REQUIRE(served.ask(byte(words::add) + text("/n") + integer(5)) == integer(5));
  REQUIRE(served.ask(byte(words::add) + text("/n") + integer(~0ULL)) == integer(4));
  REQUIRE(served.ask(byte(words::check) + texts({"/a", "/b"})) == byte(0));
  REQUIRE(served.ask(byte(words::check) + texts({"/a", "/absent"})) == byte(1));
  REQUIRE(served.ask(byte(words::wait) + texts({"/a", "/b"})) == byte(0));
  REQUIRE(served.ask(byte(words::wait) + texts({"/a", "/absent"})).empty());
  REQUIRE(served.ask(byte(words::cancel_wait)) == byte(1));
  REQUIRE(served.ask(byte(words::num_keys)) == integer(4));
  REQUIRE(served.ask(byte(words::list_keys)) == texts({"/a", "/b", "/k", "/n"}));
  REQUIRE(served.ask(byte(words::delete_key) + text("/a")) == integer(1));
  REQUIRE(served.ask(byte(words::delete_key) + text("/a")) == integer(0));
  REQUIRE(served.ask(byte(words::barrier) + text("/x") + integer(2)).empty());
  REQUIRE(served.ask(byte(words::barrier) + text("/y") + integer(1)) == byte(0));
}

TEST_CASE("compare_set tells a client of PyTorch what it expects to hear") {
  Served served;
  const auto swap = [&](const char* expected, const char* desired) {
    return served.ask(byte(words::compare_set) + text("/k") + text(expected) + text(desired));
  };
  served.client.append(words::greeting);
  REQUIRE(swap("x", "1") == text("x"));  // no such key: the expected value
  REQUIRE(swap("", "1") == text("1"));
  REQUIRE(swap("0", "2") == text("1"));
  REQUIRE(swap("1", "2") == text("2"));
}

TEST_CASE("queues of a client of PyTorch count as keys") {
  Served served;
  served.client.append(words::greeting);
  REQUIRE(served.ask(byte(words::queue_pop) + text("/q")) == integer(0));
  REQUIRE(served.ask(byte(words::check) + texts({"/q"})) == byte(1));
  REQUIRE(served.ask(byte(words::queue_push) + text("/q") + text("a")).empty());
  REQUIRE(served.ask(byte(words::queue_push) + text("/q") + text("b")).empty());
  REQUIRE(served.ask(byte(words::check) + texts({"/q"})) == byte(0));
  REQUIRE(served.ask(byte(words::wait) + texts({"/q"})) == byte(0));
  REQUIRE(served.ask(byte(words::queue_len) + text("/q")) == integer(2));
  REQUIRE(served.ask(byte(words::queue_pop) + text("/q")) == integer(2) + text("a"));
  REQUIRE(served.ask(byte(words::queue_pop) + text("/q")) == integer(1) + text("b"));
  REQUIRE(served.ask(byte(words::num_keys)) == integer(0));
}

TEST_CASE("the calls of PyTorch 1.13 have other numbers") {
  Served served;
  REQUIRE(served.ask(byte(words::set - 1) + text("/k") + text("v")).empty());
  REQUIRE(served.ask(byte(words::get - 1) + text("/k")) == text("v"));
  REQUIRE(served.ask(byte(words::num_keys - 1)) == integer(1));
  REQUIRE(served.ask(byte(words::delete_key) + text("/k")) == integer(1));
}

TEST_CASE("the workers of a TCPStore are counted under a key of their own") {
  Served served;
  REQUIRE(served.ask(words::greeting + byte(words::add) + text("init/") + integer(1)) ==
          integer(1));
  REQUIRE(served.ask(byte(words::get) + text("init/")) == text("1"));
  REQUIRE(served.ask(byte(words::check) + texts({"/init/"})) == byte(1));
  REQUIRE(served.ask(byte(words::list_keys)) == texts({"init/"}));
}

TEST_CASE("a client of PyTorch sees no key of a world") {
  REQUIRE(failure_of(words::greeting + byte(words::get) + text("world/1")).code() ==
          StatusCode::permission_denied);
  Served served;
  const auto set = served.keyspace.execute(
      1, {.kind = Kind::set, .keys = {"world/1"}, .values = {"v"}}, Instant());
  REQUIRE(set->status.ok());
  REQUIRE(served.ask(words::greeting + byte(words::num_keys)) == integer(0));
  REQUIRE(served.ask(byte(words::list_keys)) == texts({}));
}

TEST_CASE("calls of a client of PyTorch may come in any pieces, and many at once") {
  const std::string calls = words::greeting + byte(words::set) + text("/k") + text("value") +
                            byte(words::wait) + texts({"/a", "/k"}) + byte(words::ping) + "1234" +
                            byte(words::multi_set) + integer(2) + text("/a") + text("1") +
                            text("/b") + text("");
  for (std::size_t piece = 1; piece <= calls.size(); ++piece) {
    TorchClient client;
    std::vector<TorchCall> taken;
    for (std::size_t at = 0; at < calls.size(); at += piece) {
      client.append(std::string_view(calls).substr(at, piece));
      for (auto call = client.next(); call.ok() && *call; call = client.next()) {
        taken.push_back(std::move(**call));
      }
    }
    INFO(piece << " bytes at once");
    REQUIRE(client.bytes() == 0);
    REQUIRE(taken.size() == 4);
    REQUIRE(taken[0].requests.front().values.front() == "value");
    REQUIRE(taken[1].requests.front().keys == std::vector<std::string>{"/a", "/k"});
    REQUIRE(taken[2].nonce == 0x34333231);
    REQUIRE(taken[3].requests.front().values == std::vector<std::string>{"1", ""});
  }
}

TEST_CASE("what a client of PyTorch can't be served ends its connection") {
  const std::string start = words::greeting;
  REQUIRE(failure_of(start + byte(99)).code() == StatusCode::unsupported);
  REQUIRE(failure_of(start + start).code() == StatusCode::unsupported);
  REQUIRE(failure_of(byte(7)).code() == StatusCode::unsupported);  // watch_key of 1.13
  REQUIRE(failure_of(start + byte(words::get) + integer(~0ULL)).code() ==
          StatusCode::limit_exceeded);
  REQUIRE(failure_of(start + byte(words::wait) + integer(~0ULL)).code() ==
          StatusCode::limit_exceeded);
  REQUIRE(failure_of(start + byte(words::multi_set) + integer(1ULL << 40)).code() ==
          StatusCode::limit_exceeded);
  const std::string long_key = "/" + std::string(hocket::limits::store_key_bytes_max, 'k');
  REQUIRE(failure_of(start + byte(words::get) + text(long_key)).code() ==
          StatusCode::limit_exceeded);
  REQUIRE(failure_of(start + byte(words::barrier) + text("/b") + integer(0)).code() ==
          StatusCode::invalid_argument);
}

TEST_CASE("a failure for which the protocol of PyTorch has no words is one of the connection") {
  const Reply full = {.status = Status(StatusCode::limit_exceeded, "the store is full")};
  for (const auto kind : {TorchCall::Answer::none, TorchCall::Answer::value,
                          TorchCall::Answer::number, TorchCall::Answer::popped}) {
    REQUIRE(make_answer({.answer = kind}, full).status().code() == StatusCode::limit_exceeded);
  }
}
