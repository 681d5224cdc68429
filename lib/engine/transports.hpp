// The transports that there are: those that come with this build, and those that a program loads.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

namespace hocket::engine {

/// Generated from what is built.
[[nodiscard]] std::span<const TransportKind* const> built_in_transports() noexcept;

struct FoundTransports {
  /// The loaded ones first, in the order of the path: one may stand in for a built-in one, which is
  /// then not there.
  std::vector<const TransportKind*> kinds = {};
  /// One sentence for each file that could not be used.
  std::vector<std::string> complaints = {};
};

/// Those of the path (HOCKET_TRANSPORT_PATH): files, or folders of which each file *.so is meant,
/// separated by colons. What was loaded stays loaded.
[[nodiscard]] FoundTransports find_transports(std::string_view path);

}  // namespace hocket::engine
