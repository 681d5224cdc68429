// The URL by which ranks meet.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "net/endpoint.hpp"

namespace hocket::world {

/// env://, tcp://HOST:PORT, file:///PATH or torch://HOST:PORT, and behind "?" what is known of
/// rank=, size= (or world_size=), job= and timeout=; served=1 where a store listens already at
/// HOST:PORT.
struct RendezvousUrl {
  enum class Scheme { env, tcp, file, torch };

  Scheme scheme = Scheme::env;
  net::Endpoint endpoint = {};  // of tcp and torch
  std::string path = {};        // of file
  int rank = -1;                // both given, or neither
  int size = -1;
  bool is_served = false;
  std::string job = {};
  std::optional<Duration> timeout = {};
};

/// Refuses what it does not know, with the nearest name, and a secret: URLs are seen by others. No
/// message shows a value that might be one.
[[nodiscard]] Result<RendezvousUrl> parse_rendezvous_url(std::string_view text);

}  // namespace hocket::world
