#include "transports/common/link.hpp"

#include <algorithm>
#include <bit>
#include <tuple>
#include <utility>

#include <netinet/in.h>

#include <fmt/format.h>

#include "hocket/transport.hpp"

#include "base/limits.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "wire/fields.hpp"

namespace hocket::common {
namespace {

constexpr std::string_view same_settings_hint =
    "start all ranks with the same settings and version";

Status refusal(StatusCode code, std::string what, std::string_view hint) {
  return Status(code, std::move(what)).with_hint(std::string(hint));
}

template <class T>
std::span<const std::byte> as_bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span(&value, 1));
}

/// Of the addresses' beginnings.
int common_bits(const net::Address& a, const net::Address& b) noexcept {
  if (a.storage.ss_family != b.storage.ss_family) return -1;
  const bool is_v4 = a.storage.ss_family == AF_INET;
  const auto bytes = [is_v4](const net::Address& each) {
    const void* const storage = &each.storage;
    return is_v4 ? as_bytes_of(static_cast<const sockaddr_in*>(storage)->sin_addr)
                 : as_bytes_of(static_cast<const sockaddr_in6*>(storage)->sin6_addr);
  };
  const auto ours = bytes(a);
  const auto theirs = bytes(b);
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto differing = static_cast<unsigned char>(ours[i] ^ theirs[i]);
    if (differing != 0) return static_cast<int>(8 * i) + std::countl_zero(differing);
  }
  return static_cast<int>(8 * ours.size());
}

}  // namespace

std::string Address::to_string() const {
  std::string text;
  for (const net::Endpoint& each : endpoints) text += (text.empty() ? "" : ",") + each.to_string();
  return fmt::format("{} {}", text, instance);
}

Result<Address> parse_address(std::string_view text) {
  std::string_view rest = text;
  std::string_view ways = take_until(rest, " ");
  std::vector<net::Endpoint> endpoints;
  while (!ways.empty()) {
    auto endpoint = net::parse_endpoint(take_until(ways, ","));
    if (!endpoint.ok()) return endpoint.status();
    endpoints.push_back(*std::move(endpoint));
  }
  if (endpoints.empty() || endpoints.size() > limits::tcp_rails_max ||
      rest.size() != 2 * instance_bytes ||
      rest.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} is no address of a data port", quote(text)));
  }
  return Address{.endpoints = std::move(endpoints), .instance = std::string(rest)};
}

std::vector<Way> pair_addresses(std::span<const net::Address> ours,
                                std::span<const net::Address> theirs, bool is_first) {
  const auto host = [](const net::Address& each) { return each.endpoint().host; };
  if (ours.empty() || theirs.empty()) return {};
  const bool is_one_host = host(ours.front()) == host(theirs.front());
  if (is_one_host) return {{.ours = ours.front(), .theirs = theirs.front()}};
  std::vector<std::tuple<int, std::size_t, std::size_t, Way>> found;  // the best first
  for (std::size_t i = 0; i < ours.size(); ++i) {
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      const Way way = {.ours = ours[i], .theirs = theirs[k]};
      if (host(way.ours) == host(way.theirs)) continue;  // private, on two hosts
      const int common = common_bits(ours[i], theirs[k]);
      found.emplace_back(-common, is_first ? i : k, is_first ? k : i, way);
    }
  }
  std::ranges::sort(found, {}, [](const auto& each) {
    return std::tuple(std::get<0>(each), std::get<1>(each), std::get<2>(each));
  });
  std::vector<Way> ways;
  for (const auto& each : found) {
    const Way& way = std::get<3>(each);
    const bool is_used = std::ranges::any_of(ways, [&](const Way& other) {
      return host(other.ours) == host(way.ours) || host(other.theirs) == host(way.theirs);
    });
    const bool can_connect = way.ours.storage.ss_family == way.theirs.storage.ss_family;
    if (!is_used && (can_connect || ways.empty())) ways.push_back(way);
  }
  return ways;
}

std::string new_instance() { return random_hex(instance_bytes); }

std::string LinkHello::encode() const {
  std::string bytes;
  wire::FieldWriter to(bytes);
  to.integer(version);
  to.integer(epoch);
  to.integer(size);
  to.integer(rank);
  to.integer(lane);
  to.integer(stream);
  to.integer(streams);
  for (std::size_t i = 0; i < instance_bytes; ++i) {
    bytes += static_cast<char>(std::stoi(instance.substr(2 * i, 2), nullptr, 16));
  }
  return bytes;
}

LinkHello LinkHello::decode(std::string_view bytes) {
  wire::FieldReader from(bytes);
  LinkHello hello = {
      .version = from.integer<std::uint32_t>(),
      .epoch = from.integer<std::uint64_t>(),
      .size = from.integer<std::uint32_t>(),
      .rank = from.integer<std::uint32_t>(),
      .lane = from.integer<std::uint64_t>(),
      .stream = from.integer<std::uint32_t>(),
      .streams = from.integer<std::uint32_t>(),
  };
  const std::string_view instance = from.take(instance_bytes);
  hello.instance = hex(std::as_bytes(std::span(instance.data(), instance.size())));
  return hello;
}

std::string LinkAnswer::encode() const {
  std::string bytes;
  wire::FieldWriter to(bytes);
  to.integer(version);
  to.integer(static_cast<std::uint8_t>(verdict));
  to.integer(epoch);
  to.integer(size);
  to.integer(streams);
  to.integer(reason);
  return bytes;
}

LinkAnswer LinkAnswer::decode(std::string_view bytes) {
  wire::FieldReader from(bytes);
  return {
      .version = from.integer<std::uint32_t>(),
      .verdict = static_cast<LinkVerdict>(from.integer<std::uint8_t>()),
      .epoch = from.integer<std::uint64_t>(),
      .size = from.integer<std::uint32_t>(),
      .streams = from.integer<std::uint32_t>(),
      .reason = from.integer<std::uint64_t>(),
  };
}

Status LinkAnswer::status(const LinkHello& ours, std::uint32_t listener) const {
  switch (verdict) {
    case LinkVerdict::welcome:
      return {};
    case LinkVerdict::version_differs:
      return refusal(StatusCode::mismatch,
                     fmt::format("rank {} has version {} of data connections, and we have {}",
                                 listener, version, link_version),
                     same_settings_hint);
    case LinkVerdict::other_instance:
      return refusal(StatusCode::peer_lost,
                     fmt::format("rank {} is gone: somebody else listens at its address", listener),
                     "see why its process has ended");
    case LinkVerdict::epoch_differs:
      return refusal(
          StatusCode::mismatch,
          fmt::format("rank {} is of epoch {}, and we of epoch {}", listener, epoch, ours.epoch),
          "one of them goes on after a failure of which the other does not know");
    case LinkVerdict::world_differs:
      return refusal(StatusCode::mismatch,
                     fmt::format("rank {} is of a world of {}, and we are rank {} of {}", listener,
                                 size, ours.rank, ours.size),
                     "do two jobs have one name?");
    case LinkVerdict::streams_differ:
      return refusal(StatusCode::mismatch,
                     fmt::format("rank {} has {} connections for a lane of ours, and we have {}: "
                                 "HOCKET_TCP_STREAMS differs, or their addresses",
                                 listener, streams, ours.streams),
                     same_settings_hint);
    case LinkVerdict::later:
      return Status(StatusCode::timeout, fmt::format("rank {} asks to try again", listener));
    case LinkVerdict::closed:
      return closed_by_peer(listener, reason);
    case LinkVerdict::taken:
      break;
  }
  return Status(StatusCode::protocol_error,
                fmt::format("rank {} has a connection for lane {} already", listener, ours.lane));
}

}  // namespace hocket::common
