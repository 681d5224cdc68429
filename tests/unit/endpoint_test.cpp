#include "net/endpoint.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "support/catch.hpp"

using hocket::StatusCode;
using hocket::net::Endpoint;
using hocket::net::parse_endpoint;

TEST_CASE("an endpoint is read and written alike") {
  constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"node7:29500", "node7"},
      {"node_7.cluster.local:1", "node_7.cluster.local"},
      {"10.0.0.7:0", "10.0.0.7"},
      {"[::]:65535", "::"},
      {"[fd00::7]:29500", "fd00::7"},
      {"[fe80::1%eth0]:29500", "fe80::1%eth0"},
      {"[::ffff:10.0.0.7]:80", "::ffff:10.0.0.7"},
  };
  for (const auto& [text, host] : rows) {
    CAPTURE(text);
    const auto endpoint = parse_endpoint(text);
    REQUIRE(endpoint.ok());
    REQUIRE(endpoint->host == host);
    REQUIRE(endpoint->to_string() == text);
  }
  REQUIRE(parse_endpoint("node7:29500")->port == 29500);
}

TEST_CASE("what is no endpoint is refused, and the message says why") {
  const std::pair<std::string, std::string_view> rows[] = {
      {"", "no port"},
      {"node7", "no port"},
      {":29500", "no host"},
      {"node7:", "not a number from 0 to 65535"},
      {"node7:65536", "not a number from 0 to 65535"},
      {"node7:-1", "not a number from 0 to 65535"},
      {"node7:-0", "not a number from 0 to 65535"},
      {"node7:80x", "not a number from 0 to 65535"},
      {"node7: 80", "not a number from 0 to 65535"},
      {"fd00::7:80", "needs brackets"},
      {"[fd00::7]", "bracket or the port is missing"},
      {"[fd00::7:80", "bracket or the port is missing"},
      {"[node7]:80", "no IPv6 address"},
      {"[fe80::1%]:80", "no IPv6 address"},
      {"[]:80", "no IPv6 address"},
      {"no de:80", "letter"},
      {"http://node7:80", "brackets"},
      {"node7/x:80", "letter"},
      {std::string("node\0x:80", 9), "letter"},
      {std::string(300, 'x') + ":80", "too long"},
  };
  for (const auto& [text, why] : rows) {
    CAPTURE(text);
    const auto status = parse_endpoint(text).status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    REQUIRE(std::string(status.what()).find(why) != std::string::npos);
    REQUIRE(status.what().size() < 700);
    REQUIRE_FALSE(status.hint().empty());
  }
}
