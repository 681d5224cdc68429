// HOST:PORT, and what a person may write for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::net {

struct Endpoint {
  std::string host;  // a name or an address, without brackets
  std::uint16_t port = 0;

  /// "node7:29500", "[fe80::1]:29500"
  [[nodiscard]] std::string to_string() const;
};

/// The reverse of to_string. A port must be there.
[[nodiscard]] Result<Endpoint> parse_endpoint(std::string_view text);

}  // namespace hocket::net
