#include "store/keyspace.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace std::chrono_literals;
using hocket::Duration;
using hocket::Instant;
using hocket::StatusCode;
using hocket::store::Completion;
using hocket::store::Keyspace;
using hocket::store::Kind;
using hocket::store::Reply;
using hocket::store::Request;
using hocket::store::Ticket;
using Strings = std::vector<std::string>;
using Tickets = std::vector<Ticket>;

namespace {

constexpr Instant start{1h};

Request set(Strings keys, Strings values) {
  return {.kind = Kind::set, .keys = std::move(keys), .values = std::move(values)};
}
Request of(Kind kind, Strings keys, Duration timeout = 1s) {
  return {.kind = kind, .keys = std::move(keys), .timeout = timeout};
}
Request barrier(std::int64_t size, Duration timeout = 1s) {
  return {.kind = Kind::barrier, .keys = {"b"}, .number = size, .timeout = timeout};
}
Request push(std::string value) {
  return {.kind = Kind::queue_push, .keys = {"q"}, .values = {std::move(value)}};
}
Request add(std::int64_t amount) { return {.kind = Kind::add, .keys = {"n"}, .number = amount}; }
Request append(std::string more) {
  return {.kind = Kind::append, .keys = {"k"}, .values = {std::move(more)}};
}

/// The reply to a request that need not wait.
Reply at_once(Keyspace& keyspace, Request request) {
  std::optional<Reply> reply = keyspace.execute(999'999, std::move(request), start);
  REQUIRE(reply.has_value());
  return *reply;
}

void park(Keyspace& keyspace, Ticket ticket, const Request& request, Instant now = start) {
  const std::size_t before = keyspace.parked();
  const bool is_parked = !keyspace.execute(ticket, request, now).has_value();
  REQUIRE(is_parked);
  REQUIRE(keyspace.parked() == before + 1);
}

Strings texts(const Reply& reply) {
  Strings all;
  for (const auto& value : reply.values) all.push_back(value == nullptr ? "(none)" : *value);
  return all;
}

/// The tickets of requests that have succeeded meanwhile, in that order.
Tickets succeeded(Keyspace& keyspace) {
  Tickets tickets;
  for (const Completion& each : keyspace.take_completions()) {
    INFO(each.reply.status.to_string());
    REQUIRE(each.reply.status.ok());
    tickets.push_back(each.ticket);
  }
  return tickets;
}

Completion only(std::vector<Completion> completions) {
  REQUIRE(completions.size() == 1);
  return std::move(completions.front());
}

}  // namespace

TEST_CASE("who waits is completed under its ticket") {
  Keyspace keyspace;
  park(keyspace, 7, of(Kind::get, {"a"}));
  REQUIRE(keyspace.take_completions().empty());
  REQUIRE(at_once(keyspace, set({"other"}, {"x"})).status.ok());
  REQUIRE(keyspace.take_completions().empty());
  REQUIRE(at_once(keyspace, set({"a"}, {"v"})).status.ok());
  const Completion done = only(keyspace.take_completions());
  REQUIRE(done.ticket == 7);
  REQUIRE(texts(done.reply) == Strings{"v"});
  REQUIRE(keyspace.parked() == 0);
  REQUIRE(keyspace.next_deadline().is_never());
}

TEST_CASE("those who waited for a key wake in the order in which they came") {
  Keyspace keyspace;
  for (const Ticket ticket : Tickets{5, 3, 9, 1}) park(keyspace, ticket, of(Kind::wait, {"a"}));
  REQUIRE(at_once(keyspace, set({"a"}, {""})).status.ok());
  REQUIRE(succeeded(keyspace) == Tickets{5, 3, 9, 1});
}

TEST_CASE("keys that are set together wake whoever wanted both") {
  Keyspace keyspace;
  park(keyspace, 1, of(Kind::get, {"b", "a", "b"}));
  REQUIRE(at_once(keyspace, set({"a", "b"}, {"1", "2"})).status.ok());
  REQUIRE(texts(only(keyspace.take_completions()).reply) == Strings{"2", "1", "2"});
}

TEST_CASE("a key that is set anew wakes nobody twice") {
  Keyspace keyspace;
  park(keyspace, 1, of(Kind::wait, {"a", "b"}));
  for (int i = 0; i < 3; ++i) REQUIRE(at_once(keyspace, set({"a"}, {"v"})).status.ok());
  REQUIRE(keyspace.parked() == 1);
  REQUIRE(at_once(keyspace, set({"b"}, {"v"})).status.ok());
  REQUIRE(succeeded(keyspace) == Tickets{1});
}

TEST_CASE("a request that was given up gets nothing") {
  Keyspace keyspace;
  park(keyspace, 1, of(Kind::queue_pop, {"q"}));
  park(keyspace, 2, of(Kind::queue_pop, {"q"}));
  park(keyspace, 3, of(Kind::get, {"a"}));
  park(keyspace, 4, barrier(2));
  for (const Ticket ticket : Tickets{1, 3, 4, 4, 77}) keyspace.cancel(ticket);
  REQUIRE(keyspace.parked() == 1);
  REQUIRE(at_once(keyspace, push("e")).status.ok());
  REQUIRE(succeeded(keyspace) == Tickets{2});
  REQUIRE(at_once(keyspace, set({"a"}, {"v"})).status.ok());
  park(keyspace, 5, barrier(2));
  REQUIRE(keyspace.take_completions().empty());
}

TEST_CASE("requests expire at their deadline, the soonest first") {
  Keyspace keyspace;
  park(keyspace, 1, of(Kind::get, {"a"}, 3s));
  park(keyspace, 2, of(Kind::queue_pop, {"q"}, 1s));
  park(keyspace, 3, barrier(2, 2s));
  park(keyspace, 4, of(Kind::wait, {"a"}, Duration::max()));
  REQUIRE(keyspace.next_deadline().at() == start + 1s);
  keyspace.expire(start + 1s - 1ns);
  REQUIRE(keyspace.take_completions().empty());

  keyspace.expire(start + 1s);
  const Completion first = only(keyspace.take_completions());
  REQUIRE(first.ticket == 2);
  REQUIRE(first.reply.status.code() == StatusCode::timeout);
  REQUIRE(first.reply.status.what() == "queue \"q\" is empty: nothing came into it within 1s");
  REQUIRE(keyspace.next_deadline().at() == start + 2s);

  keyspace.expire(start + 1h);
  const auto others = keyspace.take_completions();
  REQUIRE(others.size() == 2);
  REQUIRE(others[0].ticket == 3);
  REQUIRE(others[0].reply.status.what() == "only 1 of 2 came to barrier \"b\" within 2s");
  REQUIRE(others[1].ticket == 1);
  REQUIRE(others[1].reply.status.what() == "key \"a\" did not appear within 3s");
  REQUIRE(keyspace.parked() == 1);
  REQUIRE(keyspace.next_deadline().is_never());
}

TEST_CASE("a message names the first of many missing keys and counts the rest") {
  Keyspace keyspace;
  Strings keys;
  for (int i = 0; i < 20; ++i) keys.push_back(std::to_string(i));
  REQUIRE(at_once(keyspace, set({"3"}, {""})).status.ok());
  const Reply reply = at_once(keyspace, of(Kind::wait, keys, 0s));
  REQUIRE(reply.status.code() == StatusCode::timeout);
  REQUIRE(reply.status.what() ==
          "19 of 20 keys did not appear at once: "
          R"("0", "1", "2", "4", "5", "6", "7", "8" and 11 more)");
}

TEST_CASE("queues go to those who waited longest, then to whoever comes") {
  Keyspace keyspace;
  for (const Ticket ticket : Tickets{8, 2, 5}) park(keyspace, ticket, of(Kind::queue_pop, {"q"}));
  for (const char* element : {"a", "b", "c", "d"}) {
    REQUIRE(at_once(keyspace, push(element)).status.ok());
  }
  const auto completions = keyspace.take_completions();
  REQUIRE(completions.size() == 3);
  const std::pair<Ticket, Strings> expected[] = {{8, {"a"}}, {2, {"b"}}, {5, {"c"}}};
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(completions[i].ticket == expected[i].first);
    REQUIRE(texts(completions[i].reply) == expected[i].second);
  }
  REQUIRE(at_once(keyspace, of(Kind::queue_len, {"q"})).number == 1);
  REQUIRE(texts(at_once(keyspace, of(Kind::queue_pop, {"q"}))) == Strings{"d"});
}

TEST_CASE("a barrier lets all go at once, or tells all that they disagree") {
  Keyspace keyspace;
  park(keyspace, 1, barrier(3));
  park(keyspace, 2, barrier(3));
  REQUIRE(at_once(keyspace, barrier(3)).status.ok());
  REQUIRE(succeeded(keyspace) == Tickets{1, 2});

  park(keyspace, 3, barrier(3));
  park(keyspace, 4, barrier(3));
  const Reply reply = at_once(keyspace, barrier(2, 0s));
  REQUIRE(reply.status.code() == StatusCode::mismatch);
  REQUIRE(reply.status.what() ==
          "barrier \"b\": one caller says that 2 take part, and 2 who came before say 3");
  for (const Completion& each : keyspace.take_completions()) {
    REQUIRE(each.reply.status.what() == reply.status.what());
  }
  REQUIRE(keyspace.parked() == 0);
  park(keyspace, 5, barrier(2));
  REQUIRE(at_once(keyspace, barrier(2)).status.ok());
}

TEST_CASE("what is held is counted, and nothing is held in the end") {
  Keyspace keyspace;
  REQUIRE(keyspace.bytes() == 0);
  std::size_t last = 0;
  const auto grows = [&] { return std::exchange(last, keyspace.bytes()) < keyspace.bytes(); };
  REQUIRE(at_once(keyspace, set({"a", "k"}, {"12345", ""})).status.ok());
  REQUIRE(grows());
  REQUIRE(at_once(keyspace, append("more")).status.ok());
  REQUIRE(keyspace.bytes() == last + 4);
  REQUIRE(grows());
  REQUIRE(at_once(keyspace, add(99)).status.ok());
  REQUIRE(grows());
  REQUIRE(at_once(keyspace, add(1)).status.ok());
  REQUIRE(keyspace.bytes() == last + 1);
  REQUIRE(at_once(keyspace, push("e")).status.ok());
  REQUIRE(grows());
  park(keyspace, 1, of(Kind::get, {"a", "x", "y"}));
  REQUIRE(grows());
  park(keyspace, 2, of(Kind::queue_pop, {"other"}));
  REQUIRE(grows());
  park(keyspace, 3, barrier(2));
  REQUIRE(grows());

  keyspace.cancel(1);
  keyspace.expire(start + 1h);
  REQUIRE(at_once(keyspace, of(Kind::queue_pop, {"q"})).status.ok());
  for (const char* key : {"a", "k", "n"}) {
    REQUIRE(at_once(keyspace, of(Kind::delete_key, {key})).number == 1);
  }
  REQUIRE(keyspace.bytes() == 0);
  REQUIRE(keyspace.parked() == 0);
}

TEST_CASE("after anything at all nothing is held when all of it is gone") {
  std::mt19937 random(11);  // the seed is fixed
  const auto any = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  const Strings names = {"a", "b", "k", "n", "q"};
  const auto name = [&] { return names[random() % names.size()]; };
  Keyspace keyspace(20'000);
  for (Ticket ticket = 0; ticket < 50'000; ++ticket) {
    Request request{.kind = static_cast<Kind>(any(hocket::store::kind_count)),
                    .number = any(5) - 1,
                    .timeout = any(300) * 1ms};
    request.keys.assign(1 + static_cast<std::size_t>(any(3)), "");
    for (std::string& key : request.keys) key = name();
    request.values.assign(1 + static_cast<std::size_t>(any(3)), std::to_string(any(50)));
    if (!hocket::store::check(request).ok()) continue;
    const Instant now = start + static_cast<int>(ticket) * 1ms;
    (void)keyspace.execute(ticket, std::move(request), now);
    if (any(4) == 0) keyspace.cancel(ticket - static_cast<Ticket>(any(20)));
    if (any(4) == 0) keyspace.expire(now);
    keyspace.take_completions().clear();
    REQUIRE(keyspace.bytes() <= 20'000);
  }
  keyspace.expire(start + 24h);
  REQUIRE(keyspace.parked() == 0);
  for (const std::string& key : names) {
    (void)at_once(keyspace, of(Kind::delete_key, {key}));
    while (at_once(keyspace, of(Kind::queue_pop, {key}, 0s)).status.ok()) continue;
  }
  REQUIRE(keyspace.bytes() == 0);
}

TEST_CASE("a store that is full takes no more, and loses nothing") {
  Keyspace keyspace(1000);
  REQUIRE(at_once(keyspace, set({"k"}, {std::string(500, 'v')})).status.ok());
  const std::size_t before = keyspace.bytes();
  for (Request& request : std::vector<Request>{
           set({"l"}, {std::string(500, 'v')}), set({"k"}, {std::string(990, 'v')}),
           set({"a", "b", "c", "d"}, {"", "", "", ""}), append(std::string(500, 'v')),
           push(std::string(500, 'e')), of(Kind::get, Strings(30, "absent")),
           Request{
               .kind = Kind::compare_set, .keys = {"l"}, .values = {"", std::string(500, 'v')}}}) {
    const Reply reply = at_once(keyspace, std::move(request));
    REQUIRE(reply.status.code() == StatusCode::limit_exceeded);
    REQUIRE(reply.status.what() == "the store is full: it may hold 1000");
    REQUIRE_FALSE(reply.status.hint().empty());
  }
  REQUIRE(keyspace.bytes() == before);
  REQUIRE(keyspace.parked() == 0);
  REQUIRE(texts(at_once(keyspace, of(Kind::get, {"k"}))) == Strings{std::string(500, 'v')});
}

TEST_CASE("in a store that is full values change in place") {
  Keyspace keyspace(400);
  REQUIRE(at_once(keyspace, add(1)).status.ok());
  REQUIRE(
      at_once(keyspace, set({"k"}, {std::string(400 - keyspace.bytes() - 129, 'v')})).status.ok());
  REQUIRE(keyspace.bytes() == 400);
  REQUIRE(at_once(keyspace, add(1)).number == 2);
  REQUIRE(at_once(keyspace, set({"n"}, {"3"})).status.ok());
  REQUIRE(at_once(keyspace, add(7)).status.code() == StatusCode::limit_exceeded);
  REQUIRE(texts(at_once(keyspace, of(Kind::get, {"n"}))) == Strings{"3"});
  REQUIRE(at_once(keyspace, set({"k"}, {"short"})).status.ok());
  REQUIRE(at_once(keyspace, add(7)).number == 10);
}

TEST_CASE("in a store that is full several values change in place together") {
  Keyspace keyspace(600);
  REQUIRE(at_once(keyspace, set({"a", "b"}, {"1", ""})).status.ok());
  REQUIRE(
      at_once(keyspace, set({"k"}, {std::string(600 - keyspace.bytes() - 129, 'v')})).status.ok());
  REQUIRE(keyspace.bytes() == 600);
  REQUIRE(at_once(keyspace, set({"a", "b"}, {"", "2"})).status.ok());
  REQUIRE(texts(at_once(keyspace, of(Kind::get, {"a", "b"}))) == Strings{"", "2"});
  const std::string large(1000, 'v');
  REQUIRE(at_once(keyspace, set({"a", "a", "b"}, {large, "3", ""})).status.ok());
  REQUIRE(texts(at_once(keyspace, of(Kind::get, {"a", "b"}))) == Strings{"3", ""});
  for (const Strings& values : {Strings{"3", "4", "5"}, Strings{"", "44", ""}}) {
    REQUIRE(at_once(keyspace, set({"a", "a", "b"}, values)).status.code() ==
            StatusCode::limit_exceeded);
  }
  REQUIRE(at_once(keyspace, set({"k", "k", "b"}, {"", "", "22"})).status.ok());
  REQUIRE(keyspace.bytes() <= 600);
}

TEST_CASE("what is appended or pushed is not answered with a number") {
  Keyspace keyspace;
  for (const Request& request : {append("more"), append("more"), push("e"), push("e")}) {
    const Reply reply = at_once(keyspace, request);
    REQUIRE(reply.status.ok());
    REQUIRE(reply.number == 0);
    REQUIRE(reply.values.empty());
  }
}

TEST_CASE("a reply keeps the value that it was given") {
  Keyspace keyspace;
  REQUIRE(at_once(keyspace, set({"k"}, {"old"})).status.ok());
  const Reply before = at_once(keyspace, of(Kind::get, {"k"}));
  REQUIRE(at_once(keyspace, append("er")).status.ok());
  REQUIRE(texts(before) == Strings{"old"});
  REQUIRE(texts(at_once(keyspace, of(Kind::get, {"k"}))) == Strings{"older"});
}

TEST_CASE("thousands who wait for thousands of keys cost seconds, not minutes") {
  constexpr std::size_t count = 1024;
  Strings keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("key " + std::to_string(i));
  Keyspace keyspace;
  const Instant begin = hocket::monotonic_clock().now();
  std::mt19937 random(3);
  for (std::size_t i = 0; i < count; ++i) {
    Strings wanted = keys;
    if (i % 3 == 1) std::ranges::reverse(wanted);
    if (i % 3 == 2) std::ranges::shuffle(wanted, random);
    park(keyspace, i, of(Kind::wait, std::move(wanted)));
  }
  std::ranges::shuffle(keys, random);
  for (const std::string& key : keys) {
    REQUIRE(keyspace.take_completions().empty());
    REQUIRE(at_once(keyspace, set({key}, {key})).status.ok());
  }
  REQUIRE(succeeded(keyspace).size() == count);
  REQUIRE(hocket::monotonic_clock().now() - begin < 60s);
}

TEST_CASE("who gives up among thousands does not look at all of them") {
  constexpr Ticket count = 20'000;
  Keyspace keyspace;
  for (Ticket ticket = 0; ticket < count; ++ticket) park(keyspace, ticket, barrier(count + 1));
  const Instant begin = hocket::monotonic_clock().now();
  keyspace.expire(start + 1h);
  REQUIRE(hocket::monotonic_clock().now() - begin < 20s);
  REQUIRE(keyspace.take_completions().size() == count);
}

TEST_CASE("a queue counts as a key for those who wait or check, and not for those who get") {
  Keyspace keyspace;
  park(keyspace, 1, of(Kind::get, {"q"}));
  park(keyspace, 2, of(Kind::wait, {"q"}));
  park(keyspace, 3, of(Kind::wait, {"q"}));
  REQUIRE(at_once(keyspace, push("a")).status.ok());
  // What was pushed is for one of them.
  const std::vector<Completion> first = keyspace.take_completions();
  REQUIRE(first.size() == 1);
  REQUIRE(first.front().ticket == 2);
  REQUIRE(at_once(keyspace, of(Kind::wait, {"q"})).status.ok());
  REQUIRE(at_once(keyspace, of(Kind::check, {"q"})).number == 1);
  REQUIRE(at_once(keyspace, push("b")).status.ok());
  REQUIRE(keyspace.take_completions().front().ticket == 3);
  REQUIRE(keyspace.parked() == 1);
  REQUIRE(at_once(keyspace, set({"q"}, {"v"})).status.ok());
  REQUIRE(keyspace.take_completions().front().ticket == 1);
}

TEST_CASE("a waiter that a queue wakes may still lack another key") {
  Keyspace keyspace;
  park(keyspace, 1, of(Kind::wait, {"q", "k"}));
  REQUIRE(at_once(keyspace, push("a")).status.ok());
  REQUIRE(keyspace.take_completions().empty());
  REQUIRE(at_once(keyspace, set({"k"}, {"v"})).status.ok());
  REQUIRE(keyspace.take_completions().size() == 1);
  REQUIRE(keyspace.parked() == 0);
}
