#include "transports/tcp/link.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "wire/fields.hpp"

namespace hocket::tcp {
namespace {

constexpr std::string_view same_settings = "start all ranks with the same settings and version";

Status refusal(StatusCode code, std::string what, std::string_view hint) {
  return Status(code, std::move(what)).with_hint(std::string(hint));
}

}  // namespace

std::string Address::to_string() const {
  return fmt::format("{} {}", endpoint.to_string(), instance);
}

Result<Address> parse_address(std::string_view text) {
  const std::size_t space = text.find(' ');
  auto endpoint = net::parse_endpoint(text.substr(0, space));
  const std::string_view instance = space == std::string_view::npos ? "" : text.substr(space + 1);
  if (!endpoint.ok()) return endpoint.status();
  if (instance.size() != 2 * instance_bytes ||
      instance.find_first_not_of("0123456789abcdef") != std::string_view::npos) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} is no address of the TCP transport", quote(text)));
  }
  return Address{.endpoint = *std::move(endpoint), .instance = std::string(instance)};
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
  };
}

Status LinkAnswer::status(const LinkHello& ours, std::uint32_t listener) const {
  switch (verdict) {
    case LinkVerdict::welcome:
      return {};
    case LinkVerdict::version_differs:
      return refusal(StatusCode::mismatch,
                     fmt::format("rank {} has version {} of the TCP transport, and we have {}",
                                 listener, version, link_version),
                     same_settings);
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
                     fmt::format("rank {} has HOCKET_TCP_STREAMS={}, and we have {}", listener,
                                 streams, ours.streams),
                     same_settings);
    case LinkVerdict::later:
      return Status(StatusCode::timeout, fmt::format("rank {} asks to try again", listener));
    case LinkVerdict::closed:
      return Status(StatusCode::peer_lost, fmt::format("rank {} closed the channel", listener));
    case LinkVerdict::taken:
      break;
  }
  return Status(StatusCode::protocol_error,
                fmt::format("rank {} has a connection for lane {} already", listener, ours.lane));
}

}  // namespace hocket::tcp
