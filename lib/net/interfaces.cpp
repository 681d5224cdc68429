#include "net/interfaces.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <tuple>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::net {
namespace {

// --- what there is ---

int read_speed(const std::string& name) {
  std::ifstream file("/sys/class/net/" + name + "/speed");
  int speed = 0;
  return file >> speed && speed > 0 ? speed : 0;
}

int count_bits(const void* mask, std::size_t size) {
  const auto* const bytes = static_cast<const unsigned char*>(mask);
  int bits = 0;
  for (std::size_t i = 0; i < size; ++i) bits += __builtin_popcount(bytes[i]);
  return bits;
}

/// The bytes of an address inside its sockaddr; none of a family that is not IP.
std::span<const std::byte> address_bytes(const sockaddr* address) noexcept {
  if (address == nullptr) return {};
  if (address->sa_family == AF_INET) {
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 1));
  }
  if (address->sa_family == AF_INET6) {
    return std::as_bytes(std::span(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, 1));
  }
  return {};
}

std::optional<Interface> read_interface(const ifaddrs& entry) {
  const auto bytes = address_bytes(entry.ifa_addr);
  char text[INET6_ADDRSTRLEN] = {};
  if (bytes.empty() ||
      inet_ntop(entry.ifa_addr->sa_family, bytes.data(), text, sizeof text) == nullptr) {
    return std::nullopt;
  }
  const auto mask = address_bytes(entry.ifa_netmask);
  Interface found = {
      .name = entry.ifa_name,
      .address = text,
      .prefix_bits = count_bits(mask.data(), mask.size()),
      .is_up = (entry.ifa_flags & IFF_UP) != 0 && (entry.ifa_flags & IFF_RUNNING) != 0,
      .is_loopback = (entry.ifa_flags & IFF_LOOPBACK) != 0,
      .speed_mbps = read_speed(entry.ifa_name),
  };
  const std::string_view address = found.address;
  found.is_link_local = address.starts_with("fe80:") || address.starts_with("169.254.");
  if (address.starts_with("fe80:")) found.address += "%" + found.name;
  return found;
}

// --- which are meant ---

struct Network {
  std::array<unsigned char, 16> bytes = {};
  int family = AF_UNSPEC;
  int bits = 0;
};

std::optional<Network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  Network network;
  const std::string address(text.substr(0, slash).substr(0, text.find('%')));
  network.family = address.find(':') == std::string::npos ? AF_INET : AF_INET6;
  const int bits_max = network.family == AF_INET ? 32 : 128;
  if (inet_pton(network.family, address.c_str(), network.bytes.data()) != 1) return std::nullopt;
  const auto bits =
      slash == std::string_view::npos ? bits_max : parse_integer(text.substr(slash + 1));
  if (!bits || *bits < 0 || *bits > bits_max) return std::nullopt;
  network.bits = static_cast<int>(*bits);
  return network;
}

bool holds(const Network& network, std::string_view address) {
  const auto other = parse_network(address);
  if (!other || other->family != network.family) return false;
  for (int bit = 0; bit < network.bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int differing = network.bytes.at(byte) ^ other->bytes.at(byte);
    if ((differing & (0x80 >> (bit % 8))) != 0) return false;
  }
  return true;
}

struct Pattern {
  std::vector<std::string_view> items;
  bool excludes = false;
};

bool is_network(std::string_view item) {
  return item.find_first_of("/:") != std::string_view::npos || parse_network(item).has_value();
}

Result<Pattern> parse_pattern(std::string_view text) {
  const auto refused = [text](std::string_view why) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("HOCKET_INTERFACE={}: {}", quote(text), why))
        .with_hint("write it as eth0, eth,ib, =eth0, 10.0.0.0/8 or ^docker,veth");
  };
  Pattern pattern;
  pattern.excludes = text.starts_with('^');
  std::string_view rest = text.substr(pattern.excludes ? 1 : 0);
  while (true) {
    const std::string_view item = rest.substr(0, rest.find(','));
    if (item.empty() || item == "=") return refused("a name is missing");
    if (item.find('^') != std::string_view::npos) {
      return refused("^ stands before the whole list or nowhere");
    }
    if (!item.starts_with('=') && is_network(item) && !parse_network(item)) {
      return refused(fmt::format("{} is no network", quote(item)));
    }
    pattern.items.push_back(item);
    if (item.size() == rest.size()) return pattern;
    rest.remove_prefix(item.size() + 1);
  }
}

bool matches(std::string_view item, const Interface& one, std::span<const Interface> all) {
  if (item.starts_with('=')) return one.name == item.substr(1);
  if (const auto network = parse_network(item)) return holds(*network, one.address);
  const bool is_exact = std::ranges::find(all, item, &Interface::name) != all.end();
  return is_exact ? one.name == item : one.name.starts_with(item);
}

/// Which item of the pattern the interface matches first; nothing when it is not meant.
std::optional<std::size_t> place_in(const Pattern& pattern, const Interface& one,
                                    std::span<const Interface> all) {
  const auto found = std::ranges::find_if(
      pattern.items, [&](std::string_view item) { return matches(item, one, all); });
  const bool is_there = found != pattern.items.end();
  if (pattern.excludes) return is_there ? std::nullopt : std::optional<std::size_t>(0);
  if (!is_there) return std::nullopt;
  return static_cast<std::size_t>(found - pattern.items.begin());
}

// --- which is best ---

bool is_virtual(std::string_view name) noexcept {
  constexpr std::string_view beginnings[] = {"docker", "virbr", "veth", "br-", "cni", "podman"};
  return std::ranges::any_of(beginnings, [name](auto each) { return name.starts_with(each); });
}

int remoteness(const Interface& one) noexcept {
  if (one.is_loopback) return 3;
  if (one.is_link_local) return 2;
  return is_virtual(one.name) ? 1 : 0;
}

std::string list_of(std::span<const Interface> interfaces) {
  std::vector<std::string> texts;
  for (const Interface& each : interfaces) {
    texts.push_back(fmt::format("{} {}/{}{}", each.name, each.address, each.prefix_bits,
                                each.is_up ? "" : " (down)"));
  }
  return cut(joined(texts, ", "), 1024);
}

/// Those that are as good as the first, which comes first.
std::vector<std::string> choose_alike(std::span<const Interface> interfaces,
                                      const std::string& first, const Pattern& pattern) {
  const auto main = std::ranges::find(interfaces, first, &Interface::address);
  std::vector<std::string> chosen = {first};
  if (main == interfaces.end() || remoteness(*main) != 0) return chosen;
  std::vector<std::string_view> names = {main->name};
  for (const Interface& each : interfaces) {
    const bool is_slow = 2 * each.speed_mbps < main->speed_mbps;  // or not known to be fast
    const bool is_alike = each.is_up && remoteness(each) == 0 && each.is_v6() == main->is_v6() &&
                          !is_slow && place_in(pattern, each, interfaces).has_value();
    if (!is_alike || std::ranges::count(names, each.name) != 0) continue;
    names.push_back(each.name);
    chosen.push_back(each.address);
  }
  return chosen;
}

}  // namespace

Result<std::vector<Interface>> list_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) {
    return Status(StatusCode::system_error, "getifaddrs").with_system_error(errno);
  }
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(first, &::freeifaddrs);
  std::vector<Interface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (auto found = read_interface(*entry)) interfaces.push_back(*std::move(found));
  }
  return interfaces;
}

Result<Interface> choose_interface(std::span<const Interface> interfaces, const Wish& wish) {
  Pattern pattern = {.items = {}, .excludes = true};
  if (!wish.pattern.empty()) {
    Result<Pattern> parsed = parse_pattern(wish.pattern);
    if (!parsed.ok()) return parsed.status();
    pattern = *std::move(parsed);
  }
  const bool wants_v6 = wish.route.find(':') != std::string_view::npos;
  const Interface* best = nullptr;
  std::tuple<bool, std::size_t, int, bool> best_rank;
  for (const Interface& each : interfaces) {
    const auto place = place_in(pattern, each, interfaces);
    if (!place || !each.is_up) continue;
    const std::tuple rank(each.address != wish.route, *place, remoteness(each),
                          !wish.route.empty() && each.is_v6() != wants_v6);
    if (best != nullptr && rank >= best_rank) continue;
    best = &each;
    best_rank = rank;
  }
  const bool is_listed = best != nullptr && best->address == wish.route;
  if (wish.pattern.empty() && !wish.route.empty() && !is_listed) {
    return Interface{
        .name = "?", .address = std::string(wish.route), .is_loopback = is_loopback(wish.route)};
  }
  if (best != nullptr) return *best;
  return Status(StatusCode::not_found,
                wish.pattern.empty()
                    ? std::string("no network interface is up")
                    : fmt::format("no network interface that is up matches HOCKET_INTERFACE={}",
                                  quote(wish.pattern)))
      .with_hint(
          fmt::format("this host has {}", interfaces.empty() ? "none" : list_of(interfaces)));
}

Result<std::vector<std::string>> choose_addresses(std::span<const Interface> interfaces,
                                                  const std::string& first,
                                                  std::string_view items) {
  if (items.empty()) return std::vector<std::string>{first};
  const Result<Pattern> pattern = parse_pattern(items);
  if (!pattern.ok()) return pattern.status();
  if (pattern->excludes) return choose_alike(interfaces, first, *pattern);
  std::vector<std::string> chosen;
  for (const std::string_view item : pattern->items) {
    std::string address(item);
    if (item.find('/') != std::string_view::npos || !parse_network(item)) {
      auto found = choose_interface(interfaces, {.pattern = item, .route = first});
      if (!found.ok()) return found.status();
      address = std::move(found->address);
    }
    if (std::ranges::count(chosen, address) == 0) chosen.push_back(std::move(address));
  }
  return chosen;
}

Result<std::vector<std::string>> choose_addresses(const std::string& first,
                                                  std::string_view items) {
  const auto interfaces = list_interfaces();
  return interfaces.ok() ? choose_addresses(*interfaces, first, items) : interfaces.status();
}

bool is_loopback(std::string_view host) noexcept {
  return host == "localhost" || host.ends_with(".localhost") || host == "::1" ||
         host.starts_with("::ffff:127.") ||
         (host.starts_with("127.") && parse_network(host).has_value());
}

}  // namespace hocket::net
