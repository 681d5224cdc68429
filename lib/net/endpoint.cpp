#include "net/endpoint.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::net {
namespace {

constexpr std::size_t name_bytes_max = 253;  // of a host, as DNS has it

constexpr bool is_host_letter(char letter) noexcept {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
}

/// An IPv6 address, perhaps with a zone, as far as its letters tell.
bool may_be_v6(std::string_view host) noexcept {
  const std::string_view address = host.substr(0, host.find('%'));
  const bool has_zone = address.size() < host.size();
  return std::ranges::count(address, ':') >= 2 &&
         address.find_first_not_of("0123456789abcdefABCDEF:.") == std::string_view::npos &&
         (!has_zone || (host.size() > address.size() + 1 &&
                        std::ranges::all_of(host.substr(address.size() + 1), is_host_letter)));
}

Status refused(std::string_view text, std::string_view why) {
  return Status(StatusCode::invalid_argument,
                fmt::format("\"{}\" is not HOST:PORT: {}", cut(text, 2 * name_bytes_max), why))
      .with_hint("write it as node7:29500, 10.0.0.7:29500 or [fd00::7]:29500");
}

}  // namespace

std::string Endpoint::to_string() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

Result<Endpoint> parse_endpoint(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refused(text, "it has no port");
  std::string_view host = text.substr(0, colon);
  const std::string_view port_text = text.substr(colon + 1);
  if (host.empty()) return refused(text, "it has no host");
  if (host.size() > name_bytes_max) return refused(text, "the host is too long");
  if (host.front() == '[') {
    host.remove_prefix(1);
    if (!host.ends_with(']')) return refused(text, "a bracket or the port is missing");
    host.remove_suffix(1);
    if (!may_be_v6(host)) return refused(text, "no IPv6 address is in the brackets");
  } else if (host.find(':') != std::string_view::npos) {
    return refused(text, "an IPv6 address needs brackets around it");
  } else if (!std::ranges::all_of(host, is_host_letter)) {
    return refused(text, "the host has a letter that no host has");
  }
  const auto port = parse_integer(port_text);
  if (!port || *port < 0 || *port > UINT16_MAX || port_text.front() == '-') {
    return refused(text, "the port is not a number from 0 to 65535");
  }
  return Endpoint{.host = std::string(host), .port = static_cast<std::uint16_t>(*port)};
}

}  // namespace hocket::net
