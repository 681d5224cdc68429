#include "transports/verbs/verbs.hpp"

#include <span>

#include <fmt/format.h>

#include "base/config.hpp"
#include "transports/verbs/port.hpp"
#include "transports/verbs/transport.hpp"

namespace hocket::verbs {
namespace {

Status available(std::span<const Setting> settings) {
  const auto ports = list_ports();
  if (!ports.ok()) return ports.status();
  const Config config(settings);
  return choose_ports(*ports, {.devices = config.get(variables::ib_hca),
                               .gid_index = config.get(variables::ib_gid_index)})
      .status();
}

Status out_of_range(const VariableInfo& variable, std::int64_t value, std::int64_t most) {
  return Status(StatusCode::invalid_argument,
                fmt::format("{}={} is not from 0 to {}", variable.name, value, most));
}

Result<std::unique_ptr<Transport>> make(const TransportOptions& options) {
  constexpr std::int64_t traffic_class_max = 255;
  constexpr std::int64_t service_level_max = 15;
  const Config config(options.settings);
  const std::int64_t traffic_class = config.get(variables::ib_tc);
  const std::int64_t service_level = config.get(variables::ib_sl);
  if (traffic_class < 0 || traffic_class > traffic_class_max) {
    return out_of_range(variables::ib_tc, traffic_class, traffic_class_max);
  }
  if (service_level < 0 || service_level > service_level_max) {
    return out_of_range(variables::ib_sl, service_level, service_level_max);
  }
  return VerbsTransport::make(options, {.devices = config.get(variables::ib_hca),
                                        .gid_index = config.get(variables::ib_gid_index),
                                        .traffic_class = static_cast<std::uint8_t>(traffic_class),
                                        .service_level = static_cast<std::uint8_t>(service_level)});
}

}  // namespace

constinit const TransportKind kind = {
    .name = "verbs",
    .summary = "InfiniBand and RoCE adapters: reliable queue pairs, one for each peer and rail",
    .available = available,
    .make = make,
};

}  // namespace hocket::verbs
