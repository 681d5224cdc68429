#include "store/message.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.hpp"
#include "support/catch.hpp"

using namespace std::chrono_literals;
using namespace std::string_literals;
using hocket::Duration;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::check;
using hocket::store::decode_reply;
using hocket::store::decode_request;
using hocket::store::encode_value_head;
using hocket::store::fits;
using hocket::store::Kind;
using hocket::store::Member;
using hocket::store::Reply;
using hocket::store::Request;
using hocket::store::Value;
using Strings = std::vector<std::string>;

namespace {

constexpr auto most = std::numeric_limits<std::int64_t>::max();
constexpr auto least = std::numeric_limits<std::int64_t>::min();

std::vector<Request> one_of_each_kind() {
  return {
      {.kind = Kind::ping},
      {.kind = Kind::set, .keys = {"a", "\0b"s}, .values = {"", "\xff"}},
      {.kind = Kind::get, .keys = {"a", "b", "c"}, .timeout = 5s},
      {.kind = Kind::add, .keys = {"n"}, .number = least},
      {.kind = Kind::append, .keys = {""}, .values = {"more"}},
      {.kind = Kind::check, .keys = {}},
      {.kind = Kind::wait, .keys = {"a"}, .timeout = Duration::max()},
      {.kind = Kind::compare_set, .keys = {"k"}, .values = {"old", "new"}},
      {.kind = Kind::delete_key, .keys = {"k"}},
      {.kind = Kind::num_keys, .keys = {"prefix"}},
      {.kind = Kind::keys, .keys = {""}},
      {.kind = Kind::queue_push, .keys = {"q"}, .values = {std::string(1000, 'e')}},
      {.kind = Kind::queue_pop, .keys = {"q"}, .timeout = Duration::min()},
      {.kind = Kind::queue_len, .keys = {"q"}},
      {.kind = Kind::barrier, .keys = {"b"}, .number = most, .timeout = -1ns},
      {.kind = Kind::will, .keys = {"k"}, .values = {"v"}, .number = least},
      {.kind = Kind::absence, .keys = {"p/"}, .values = {"v"}, .number = 2},
  };
}

std::string encoded(const Request& request) {
  std::string bytes;
  encode(request, bytes);
  return bytes;
}

std::string encoded(const Reply& reply) {
  std::string bytes;
  encode_head(reply, bytes);
  for (const Value& value : reply.values) {
    encode_value_head(value, bytes);
    if (value != nullptr) bytes += *value;
  }
  return bytes;
}

bool equal(const Request& a, const Request& b) {
  return a.kind == b.kind && a.keys == b.keys && a.values == b.values && a.number == b.number &&
         a.timeout == b.timeout;
}

Value share(std::string text) { return std::make_shared<const std::string>(std::move(text)); }

Reply with_values(std::size_t count) { return {.values = std::vector<Value>(count, share("v"))}; }

}  // namespace

TEST_CASE("requests of every kind come back as they were") {
  const auto requests = one_of_each_kind();
  REQUIRE(requests.size() == hocket::store::kind_count);
  for (std::size_t i = 0; i < requests.size(); ++i) {
    CAPTURE(i);
    REQUIRE(static_cast<std::size_t>(requests[i].kind) == i);
    const auto back = decode_request(encoded(requests[i]));
    REQUIRE(back.status().to_string() == "ok");
    REQUIRE(equal(*back, requests[i]));
  }
}

TEST_CASE("the numbers of kinds are those of the first version") {
  const std::pair<Kind, int> numbers[] = {
      {Kind::ping, 0},       {Kind::set, 1},        {Kind::get, 2},      {Kind::add, 3},
      {Kind::append, 4},     {Kind::check, 5},      {Kind::wait, 6},     {Kind::compare_set, 7},
      {Kind::delete_key, 8}, {Kind::num_keys, 9},   {Kind::keys, 10},    {Kind::queue_push, 11},
      {Kind::queue_pop, 12}, {Kind::queue_len, 13}, {Kind::barrier, 14}, {Kind::will, 15},
      {Kind::absence, 16},
  };
  for (const auto& each : numbers) REQUIRE(static_cast<int>(each.first) == each.second);
  REQUIRE(name(Kind::compare_set) == "compare_set");
  REQUIRE(name(Kind::barrier) == "barrier");
}

TEST_CASE("a member is one number") {
  for (const Member& member : {Member{}, Member{.rank = 0, .size = 1}, Member{.rank = 7},
                               Member{.rank = (1 << 20) - 1, .size = 1 << 20}}) {
    const Member back = Member::from_number(member.to_number());
    REQUIRE(back.rank == member.rank);
    REQUIRE(back.size == member.size);
  }
}

TEST_CASE("the bytes of a request are those of the first version") {
  const std::string bytes =
      encoded({.kind = Kind::set, .keys = {"k"}, .values = {"v"}, .number = 2, .timeout = 3ns});
  REQUIRE(bytes ==
          "\x01"
          "\x02\0\0\0\0\0\0\0"
          "\x03\0\0\0\0\0\0\0"
          "\x01\0\0\0\x01\0\0\0k"
          "\x01\0\0\0\x01\0\0\0v"s);
}

TEST_CASE("a request that is cut short or goes on is refused") {
  for (const Request& request : one_of_each_kind()) {
    const std::string bytes = encoded(request);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      CAPTURE(name(request.kind), length);
      REQUIRE_FALSE(decode_request(bytes.substr(0, length)).ok());
    }
    REQUIRE(decode_request(bytes + '\0').status().code() == StatusCode::protocol_error);
  }
}

TEST_CASE("a kind of another version is said to be unknown") {
  for (const int kind : {static_cast<int>(hocket::store::kind_count), 100, 255}) {
    std::string bytes = encoded({.kind = Kind::ping});
    bytes[0] = static_cast<char>(kind);
    const Status status = decode_request(bytes).status();
    REQUIRE(status.code() == StatusCode::unsupported);
    REQUIRE(status.what() == "a request of unknown kind " + std::to_string(kind));
  }
}

TEST_CASE("counts and lengths that lie are refused, and cost nothing") {
  const std::string bytes = encoded({.kind = Kind::get, .keys = {"a", "b"}});
  constexpr std::size_t count_at = 1 + 8 + 8;
  for (const std::size_t at : {count_at, count_at + 4, count_at + 9, bytes.size() - 4}) {
    for (const char byte : {'\x00', '\x07', '\xff'}) {
      std::string lie = bytes;
      for (std::size_t i = 0; i < 4; ++i) lie[at + i] = byte;
      if (lie == bytes) continue;
      CAPTURE(at, static_cast<int>(byte));
      REQUIRE_FALSE(decode_request(lie).ok());
    }
  }
}

TEST_CASE("a request that came is checked like our own") {
  const Request wrong[] = {
      {.kind = Kind::ping, .keys = {"k"}},
      {.kind = Kind::set, .keys = {"a", "b"}, .values = {"1"}},
      {.kind = Kind::set, .values = {"1"}},
      {.kind = Kind::get, .keys = {"a"}, .values = {"v"}},
      {.kind = Kind::add},
      {.kind = Kind::add, .keys = {"a", "b"}},
      {.kind = Kind::compare_set, .keys = {"a"}, .values = {"1"}},
      {.kind = Kind::queue_push, .keys = {"q"}},
      {.kind = Kind::keys},
      {.kind = Kind::barrier, .keys = {"b"}, .number = 0},
      {.kind = Kind::barrier, .keys = {"b"}, .number = least},
  };
  for (const Request& request : wrong) {
    CAPTURE(name(request.kind));
    REQUIRE(check(request).code() == StatusCode::invalid_argument);
    REQUIRE(decode_request(encoded(request)).status().code() == StatusCode::invalid_argument);
  }
  const std::string longest(hocket::limits::store_key_bytes_max, 'k');
  REQUIRE(check({.kind = Kind::get, .keys = {longest}}).ok());
  const Request longer{.kind = Kind::get, .keys = {longest + 'k'}};
  REQUIRE(decode_request(encoded(longer)).status().code() == StatusCode::limit_exceeded);
}

TEST_CASE("limits of requests hold to the byte") {
  const auto keys = [](std::size_t count) {
    return Request{.kind = Kind::check, .keys = Strings(count, "")};
  };
  REQUIRE(check(keys(hocket::limits::store_keys_per_request_max)).ok());
  REQUIRE(check(keys(hocket::limits::store_keys_per_request_max + 1)).code() ==
          StatusCode::limit_exceeded);
  Request large{.kind = Kind::set, .keys = {"k"}};
  large.values = {std::string(hocket::limits::store_message_bytes_max - 1, 'v')};
  REQUIRE(check(large).ok());
  REQUIRE(encoded(large).size() <= hocket::store::encoded_bytes_max);
  large.values[0] += 'v';
  REQUIRE(check(large).code() == StatusCode::limit_exceeded);
  const Request many = keys(hocket::limits::store_keys_per_request_max);
  REQUIRE(encoded(many).size() <= hocket::store::encoded_bytes_max);
}

TEST_CASE("replies come back as they were") {
  const Reply replies[] = {
      {},
      {.number = least},
      {.number = most, .values = {share("a"), nullptr, share(""), share("\0\xff"s)}},
      {.status = Status(StatusCode::timeout, "too late").with_hint("come earlier"), .number = 3},
  };
  for (const Reply& reply : replies) {
    const std::string bytes = encoded(reply);
    const auto back = decode_reply(bytes);
    REQUIRE(back.status().to_string() == "ok");
    REQUIRE(back->number == reply.number);
    REQUIRE(back->status.code() == reply.status.code());
    REQUIRE(back->status.what() == reply.status.what());
    REQUIRE(back->status.hint() == reply.status.hint());
    REQUIRE(back->values.size() == reply.values.size());
    REQUIRE(value_bytes(*back) == value_bytes(reply));
    for (std::size_t i = 0; i < reply.values.size(); ++i) {
      REQUIRE((back->values[i] == nullptr) == (reply.values[i] == nullptr));
      if (reply.values[i] != nullptr) REQUIRE(*back->values[i] == *reply.values[i]);
    }
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      REQUIRE_FALSE(decode_reply(bytes.substr(0, length)).ok());
    }
    REQUIRE_FALSE(decode_reply(bytes + "x").ok());
  }
}

TEST_CASE("a reply's code must be one, its counts true, its error short") {
  std::string bytes = encoded(Reply{});
  bytes[0] = 99;
  REQUIRE_FALSE(decode_reply(bytes).ok());
  bytes = encoded(with_values(2));
  bytes[bytes.size() - 14] = 3;
  REQUIRE_FALSE(decode_reply(bytes).ok());
  bytes[bytes.size() - 11] = '\x7f';
  REQUIRE_FALSE(decode_reply(bytes).ok());

  const Reply wordy{.status = Status(StatusCode::internal, std::string(100'000, 'w'))};
  const auto back = decode_reply(encoded(wordy));
  REQUIRE(back.ok());
  REQUIRE(back->status.what().size() <= hocket::limits::store_error_bytes_max);
}

TEST_CASE("a reply fits a request when it has its values") {
  const Request get{.kind = Kind::get, .keys = {"a", "b"}};
  REQUIRE(fits(with_values(2), get));
  REQUIRE_FALSE(fits(with_values(1), get));
  REQUIRE_FALSE(fits(with_values(3), get));
  REQUIRE_FALSE(fits(Reply{.values = {share("a"), nullptr}}, get));
  const Reply failure{.status = Status(StatusCode::timeout, "late")};
  REQUIRE(fits(failure, get));
  REQUIRE_FALSE(fits(Reply{.status = failure.status, .values = {share("a"), share("b")}}, get));

  const Request swap{.kind = Kind::compare_set, .keys = {"k"}, .values = {"", ""}};
  REQUIRE(fits(Reply{.values = {nullptr}}, swap));
  REQUIRE(fits(with_values(1), swap));
  REQUIRE_FALSE(fits(Reply{}, swap));
  REQUIRE(fits(with_values(100), {.kind = Kind::keys, .keys = {""}}));
  REQUIRE(fits(Reply{}, {.kind = Kind::keys, .keys = {""}}));
  REQUIRE_FALSE(fits(with_values(1), {.kind = Kind::set, .keys = {"k"}, .values = {"v"}}));
  REQUIRE_FALSE(fits(Reply{}, {.kind = Kind::queue_pop, .keys = {"q"}}));
}

TEST_CASE("bytes at random and bytes with a flaw are read without harm") {
  std::mt19937 random(5);  // the seed is fixed
  const auto requests = one_of_each_kind();
  for (int i = 0; i < 200'000; ++i) {
    std::string bytes = encoded(requests[random() % requests.size()]);
    if (i % 4 == 0) bytes.resize(random() % 64);
    for (unsigned flaws = random() % 4; flaws > 0 && !bytes.empty(); --flaws) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    if (const auto request = decode_request(bytes); request.ok()) {
      if (encoded(*request) != bytes) FAIL("what was read is not what was there");
    }
    if (const auto reply = decode_reply(bytes); reply.ok()) {
      if (value_bytes(*reply) > bytes.size()) FAIL("values came from nowhere");
    }
  }
}
