#include "transports/tcp/tcp.hpp"

#include <cstdint>
#include <span>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/limits.hpp"
#include "transports/tcp/transport.hpp"

namespace hocket::tcp {
namespace {

Status available(std::span<const Setting> /*settings*/) { return {}; }

Result<std::unique_ptr<Transport>> make(const TransportOptions& options) {
  const Config config(options.settings);
  const std::int64_t streams = config.get(variables::tcp_streams);
  if (streams >= 1 && streams <= limits::tcp_streams_max) {
    return TcpTransport::make(options, static_cast<std::uint32_t>(streams),
                              config.get(variables::tcp_interfaces));
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("{}={} is not from 1 to {}", variables::tcp_streams.name, streams,
                            limits::tcp_streams_max));
}

}  // namespace

constinit const TransportKind kind = {
    .name = "tcp",
    .summary = "sockets: a connection for each lane, encrypted if asked for",
    .available = available,
    .make = make,
};

}  // namespace hocket::tcp
