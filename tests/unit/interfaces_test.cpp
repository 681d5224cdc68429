#include "net/interfaces.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using hocket::StatusCode;
using hocket::net::choose_interface;
using hocket::net::Interface;
using hocket::net::is_loopback;
using hocket::net::list_interfaces;
using hocket::net::Wish;

namespace {

const std::vector<Interface> host = {
    {.name = "lo", .address = "127.0.0.1", .prefix_bits = 8, .is_loopback = true},
    {.name = "docker0", .address = "172.17.0.1", .prefix_bits = 16},
    {.name = "eth9", .address = "10.9.0.7", .prefix_bits = 24, .is_up = false},
    {.name = "eth10", .address = "10.10.0.7", .prefix_bits = 24},
    {.name = "eth1", .address = "10.1.0.7", .prefix_bits = 24},
    {.name = "ib0", .address = "192.168.0.7", .prefix_bits = 24},
    {.name = "lo", .address = "::1", .prefix_bits = 128, .is_loopback = true},
    {.name = "eth1", .address = "fd01::7", .prefix_bits = 64},
    {.name = "ib0", .address = "fe80::7%ib0", .prefix_bits = 64, .is_link_local = true},
};

std::string chosen(std::string_view pattern, std::string_view route = {},
                   const std::vector<Interface>& interfaces = host) {
  const auto found = choose_interface(interfaces, {.pattern = pattern, .route = route});
  return found.ok() ? found->name + " " + found->address : std::string(name(found.status().code()));
}

}  // namespace

TEST_CASE("without a pattern it is the address of the route, listed or not") {
  REQUIRE(chosen("", "192.168.0.7") == "ib0 192.168.0.7");
  REQUIRE(chosen("", "fe80::7%ib0") == "ib0 fe80::7%ib0");
  REQUIRE(chosen("", "127.0.0.1") == "lo 127.0.0.1");
  REQUIRE(chosen("", "10.77.0.1") == "? 10.77.0.1");
  REQUIRE(choose_interface(host, {.pattern = "", .route = "127.0.0.5"})->is_loopback);
}

TEST_CASE("without a route it is the first that others may reach") {
  REQUIRE(chosen("") == "eth10 10.10.0.7");
  std::vector<Interface> left = host;
  const auto without = [&left](std::string_view name) {
    std::erase_if(left, [name](const Interface& each) { return each.name == name; });
    return chosen("", "", left);
  };
  REQUIRE(without("eth10") == "eth1 10.1.0.7");
  REQUIRE(without("eth1") == "ib0 192.168.0.7");
  std::erase_if(left, [](const Interface& each) { return each.address == "192.168.0.7"; });
  REQUIRE(chosen("", "", left) == "docker0 172.17.0.1");
  REQUIRE(without("docker0") == "ib0 fe80::7%ib0");
  REQUIRE(without("ib0") == "lo 127.0.0.1");
  REQUIRE(without("lo") == "not found");
}

TEST_CASE("a pattern chooses") {
  constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"ib0", "ib0 192.168.0.7"},
      {"ib", "ib0 192.168.0.7"},
      {"eth", "eth10 10.10.0.7"},
      {"eth1", "eth1 10.1.0.7"},  // not eth10: the exact name wins
      {"=eth1", "eth1 10.1.0.7"},
      {"=eth", "not found"},
      {"eth9", "not found"},  // it is down
      {"wlan", "not found"},
      {"wlan,ib", "ib0 192.168.0.7"},
      {"ib,eth", "ib0 192.168.0.7"},  // in the order of the list
      {"lo", "lo 127.0.0.1"},
      {"docker", "docker0 172.17.0.1"},
      {"^eth", "ib0 192.168.0.7"},
      {"^eth,ib0", "docker0 172.17.0.1"},
      {"^=eth", "eth10 10.10.0.7"},
      {"^eth10,192.168.0.0/16", "eth1 10.1.0.7"},
      {"10.1.0.0/16", "eth1 10.1.0.7"},
      {"10.0.0.0/8", "eth10 10.10.0.7"},
      {"10.10.0.7", "eth10 10.10.0.7"},
      {"10.1.0.6/31", "eth1 10.1.0.7"},
      {"10.1.0.4/31", "not found"},
      {"0.0.0.0/0", "eth10 10.10.0.7"},
      {"fd00::/8", "eth1 fd01::7"},
      {"fd00::/16", "not found"},
      {"fe80::/10", "ib0 fe80::7%ib0"},
      {"::/0", "eth1 fd01::7"},
  };
  for (const auto& [pattern, expected] : rows) {
    CAPTURE(pattern);
    REQUIRE(chosen(pattern) == expected);
  }
}

TEST_CASE("among those that match the route's address wins, then its family") {
  REQUIRE(chosen("eth,ib", "192.168.0.7") == "ib0 192.168.0.7");
  REQUIRE(chosen("eth1", "fd02::1") == "eth1 fd01::7");
  REQUIRE(chosen("eth1", "10.77.0.1") == "eth1 10.1.0.7");
  REQUIRE(chosen("ib0", "fd02::1") == "ib0 192.168.0.7");  // better than link-local
}

TEST_CASE("a pattern that nothing matches is an error that lists what there is") {
  const auto status = choose_interface(host, {.pattern = "wlan", .route = "10.1.0.7"}).status();
  REQUIRE(status.code() == StatusCode::not_found);
  REQUIRE(status.what() == "no network interface that is up matches HOCKET_INTERFACE=\"wlan\"");
  for (const std::string_view shown : {"eth9 10.9.0.7/24 (down)", "ib0 fe80::7%ib0/64"}) {
    REQUIRE(status.hint().find(shown) != std::string_view::npos);
  }
}

TEST_CASE("a pattern that can't be read is refused") {
  for (const std::string_view pattern :
       {",", "eth,", "^", "eth,^ib", "=", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "fd00::x/8",
        "10.0.0.0/", "10.0.0.0/-1", "eth/8"}) {
    CAPTURE(pattern);
    const auto status = choose_interface(host, {.pattern = pattern}).status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    REQUIRE_FALSE(status.hint().empty());
  }
}

TEST_CASE("this host has a loopback interface") {
  const auto interfaces = list_interfaces();
  REQUIRE(interfaces.ok());
  const auto loopback = std::ranges::find(*interfaces, "127.0.0.1", &Interface::address);
  REQUIRE(loopback != interfaces->end());
  REQUIRE(loopback->is_loopback);
  REQUIRE(loopback->is_up);
  REQUIRE(loopback->prefix_bits == 8);
  for (const Interface& each : *interfaces) {
    REQUIRE_FALSE(each.name.empty());
    REQUIRE_FALSE(each.address.empty());
    REQUIRE(each.is_loopback == is_loopback(each.address));
  }
}

TEST_CASE("hosts that only this host reaches") {
  for (const auto* host_name : {"localhost", "a.localhost", "127.0.0.1", "127.1.2.3", "::1"}) {
    REQUIRE(is_loopback(host_name));
  }
  for (const auto* host_name : {"node", "localhost.org", "10.0.0.1", "127.example.org", "::", ""}) {
    REQUIRE_FALSE(is_loopback(host_name));
  }
}

TEST_CASE("over several networks at once: those like the first one's, or those that are named") {
  std::vector<Interface> many = host;
  const auto addresses = [&many](const std::string& first, std::string_view items) {
    const auto found = hocket::net::choose_addresses(many, first, items);
    if (!found.ok()) return std::vector<std::string>{std::string(name(found.status().code()))};
    return *found;
  };
  using List = std::vector<std::string>;
  CHECK(addresses("10.1.0.7", "") == List{"10.1.0.7"});
  CHECK(addresses("10.1.0.7", "^none") == List{"10.1.0.7", "10.10.0.7", "192.168.0.7"});
  CHECK(addresses("10.1.0.7", "^ib,docker") == List{"10.1.0.7", "10.10.0.7"});
  CHECK(addresses("10.1.0.7", "^eth,ib") == List{"10.1.0.7"});
  CHECK(addresses("fd01::7", "^none") == List{"fd01::7"});
  CHECK(addresses("127.0.0.1", "^none") == List{"127.0.0.1"});
  CHECK(addresses("172.17.0.1", "^none") == List{"172.17.0.1"});
  CHECK(addresses("10.99.0.1", "^none") == List{"10.99.0.1"});
  CHECK(addresses("10.1.0.7", "ib0,eth10") == List{"192.168.0.7", "10.10.0.7"});
  CHECK(addresses("10.1.0.7", "eth1,10.0.0.0/8,=eth10") == List{"10.1.0.7", "10.10.0.7"});
  CHECK(addresses("10.1.0.7", "127.0.0.1,127.0.1.1") == List{"127.0.0.1", "127.0.1.1"});
  CHECK(addresses("10.1.0.7", "wlan") == List{"not found"});
  CHECK(addresses("10.1.0.7", "eth1,,ib0") == List{"invalid argument"});

  many[4].speed_mbps = 25'000;
  many[3].speed_mbps = 1'000;
  many[5].speed_mbps = 25'000;
  CHECK(addresses("10.1.0.7", "^none") == List{"10.1.0.7", "192.168.0.7"});
  many[3].name = many[5].name;  // two addresses of one interface
  many[3].speed_mbps = 25'000;
  CHECK(addresses("10.1.0.7", "^none") == List{"10.1.0.7", "10.10.0.7"});
}
