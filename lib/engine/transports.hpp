// The transports that there are: those that come with this build, and those that a program loads.
#pragma once

#include <memory>
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

/// Those that `wanted`, a list of names with commas (HOCKET_TRANSPORT), names; without it the first
/// that can serve, and if it came with Hocket, the others that did, for ranks that lack it. Fails
/// with unsupported, and says of each why not.
[[nodiscard]] Result<std::vector<const TransportKind*>> choose_transports(
    const FoundTransports& found, std::string_view wanted, std::span<const Setting> settings);

/// What a rank's messages go by: one transport, or several as one.
struct MadeTransport {
  std::vector<std::string> names = {};
  std::unique_ptr<Transport> transport = {};

  /// "tcp", or "verbs,tcp"
  [[nodiscard]] std::string name() const;
  /// As other ranks read it.
  [[nodiscard]] std::string address() const;
  /// The addresses of all ranks, as their address() says them.
  [[nodiscard]] Status connect(std::vector<std::string> addresses) const;
};

/// Of these kinds, the best first. One that can't do what the options ask for (unsupported) is left
/// out when another can.
[[nodiscard]] Result<MadeTransport> make_transport(std::span<const TransportKind* const> kinds,
                                                   const TransportOptions& options);

}  // namespace hocket::engine
