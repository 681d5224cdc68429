// What two ends say to each other before a connection becomes part of a channel: who dials whom,
// and for what. Inside the handshake of lib/wire, each of one fixed size:
//
//   LinkHello   dialler   version 4, epoch 8, world size 4, rank 4, lane 8, stream 4, streams 4,
//                         instance of the one who is dialled 16
//   LinkAnswer  listener  version 4, verdict 1, epoch 8, world size 4, streams 4, reason 8
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "link/greeting.hpp"
#include "net/endpoint.hpp"
#include "net/socket.hpp"

namespace hocket::common {

inline constexpr std::uint32_t link_version = 3;  // 2 had no tags and reasons
inline constexpr std::size_t instance_bytes = 16;
inline constexpr std::size_t link_hello_bytes = 52;
inline constexpr std::size_t link_answer_bytes = 29;
inline constexpr link::Words link_words = {.purpose = wire::Purpose::data_link,
                                           .hello_bytes = link_hello_bytes,
                                           .answer_bytes = link_answer_bytes};

/// Where a transport listens, and which one it is: random bytes, in hexadecimal digits.
struct Address {
  std::vector<net::Endpoint> endpoints = {};
  std::string instance = {};

  /// "10.0.0.7:4711,10.1.0.7:4712 00f3…"
  [[nodiscard]] std::string to_string() const;
};
[[nodiscard]] Result<Address> parse_address(std::string_view text);
[[nodiscard]] std::string new_instance();

/// An address of ours, and the one of the other end that is reached from there.
struct Way {
  net::Address ours = {};
  net::Address theirs = {};
};

/// Of two ranks' addresses those with the longest common beginnings belong together, in doubt in
/// their order; each is used once at most. Two that have an address in common are on one host, and
/// have one way. `is_first` tells the two ends apart, so that both come to the same ways in the
/// same order.
[[nodiscard]] std::vector<Way> pair_addresses(std::span<const net::Address> ours,
                                              std::span<const net::Address> theirs, bool is_first);

struct LinkHello {
  std::uint32_t version = link_version;
  std::uint64_t epoch = 0;
  std::uint32_t size = 1;
  std::uint32_t rank = 0;  // the dialler's
  std::uint64_t lane = 0;
  std::uint32_t stream = 0;
  std::uint32_t streams = 1;
  std::string instance = {};

  [[nodiscard]] std::string encode() const;
  /// Of exactly link_hello_bytes.
  [[nodiscard]] static LinkHello decode(std::string_view bytes);
};

enum class LinkVerdict : std::uint8_t {
  welcome = 0,
  version_differs = 1,
  other_instance = 2,
  epoch_differs = 3,
  world_differs = 4,
  streams_differ = 5,
  later = 6,   // the listener dials itself, or has no room: try again
  closed = 7,  // the channel is over
  taken = 8,
};

struct LinkAnswer {
  std::uint32_t version = link_version;
  LinkVerdict verdict = LinkVerdict::welcome;
  std::uint64_t epoch = 0;
  std::uint32_t size = 1;
  std::uint32_t streams = 1;
  std::uint64_t reason = 0;  // of closed (pack_reason)

  [[nodiscard]] std::string encode() const;
  /// Of exactly link_answer_bytes.
  [[nodiscard]] static LinkAnswer decode(std::string_view bytes);

  /// Success for welcome, else why not, as the dialler sees it.
  [[nodiscard]] Status status(const LinkHello& ours, std::uint32_t listener) const;
};

}  // namespace hocket::common
