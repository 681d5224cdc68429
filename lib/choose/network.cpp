#include "choose/network.hpp"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::choose {
namespace {

constexpr std::array table = {
    // Inside a host all messages are copied twice, by the processors of its ranks.
    Preset{.name = "tcp",
           .summary = "TCP inside hosts too, and 10 Gbit/s between them",
           .network = {.host_latency = 3e-6,
                       .latency = 15e-6,
                       .host_overhead = 2e-6,
                       .overhead = 4e-6,
                       .host_bandwidth = 4e9,
                       .memory_bandwidth = 5.5e9,
                       .host_incast = 0.06,
                       .nic_bandwidth = 1.18e9,
                       .incast = 0.03}},
    Preset{.name = "ethernet-1g",
           .summary = "1 Gbit/s, TCP",
           .network = {.latency = 30e-6, .overhead = 5e-6, .nic_bandwidth = 118e6}},
    Preset{.name = "ethernet-10g",
           .summary = "10 Gbit/s, TCP",
           .network = {.latency = 15e-6, .overhead = 4e-6, .nic_bandwidth = 1.18e9}},
    Preset{.name = "ethernet-100g",
           .summary = "100 Gbit/s, TCP",
           .network = {.latency = 12e-6, .overhead = 4e-6, .nic_bandwidth = 11.8e9}},
    Preset{.name = "infiniband-hdr",
           .summary = "200 Gbit/s, RDMA",
           .network = {.latency = 1.2e-6,
                       .hop_latency = 0.2e-6,
                       .overhead = 0.3e-6,
                       .eager_bytes = 8192,
                       .nic_bandwidth = 24.5e9}},
    Preset{.name = "infiniband-ndr",
           .summary = "400 Gbit/s, RDMA",
           .network = {.latency = 1.1e-6,
                       .hop_latency = 0.2e-6,
                       .overhead = 0.3e-6,
                       .eager_bytes = 8192,
                       .nic_bandwidth = 49e9}},
    Preset{.name = "shared-memory",
           .summary = "all ranks on one host",
           .network = {.ranks_per_host = UINT32_MAX,
                       .host_latency = 0.15e-6,
                       .host_overhead = 0.35e-6,
                       .eager_bytes = 8192,
                       .host_bandwidth = 7e9,
                       .memory_bandwidth = 100e9}},
};
constexpr const Network& shared_memory = table.back().network;

struct Amount {
  std::string_view name;
  double value;
};

}  // namespace

Status check_network(const Network& network) {
  const auto refuse = [](std::string_view what, std::string_view must) {
    return Status(StatusCode::invalid_argument, fmt::format("network: {} must be {}", what, must));
  };
  const std::array amounts = {
      Amount{"host_latency", network.host_latency},
      Amount{"latency", network.latency},
      Amount{"hop_latency", network.hop_latency},
      Amount{"host_overhead", network.host_overhead},
      Amount{"overhead", network.overhead},
      Amount{"eager_bytes", network.eager_bytes},
      Amount{"host_bandwidth", network.host_bandwidth},
      Amount{"memory_bandwidth", network.memory_bandwidth},
      Amount{"host_incast", network.host_incast},
      Amount{"nic_bandwidth", network.nic_bandwidth},
      Amount{"incast", network.incast},
      Amount{"burst", network.burst},
      Amount{"handover", network.handover},
      Amount{"acknowledge", network.acknowledge},
      Amount{"reduce_speed", network.reduce_speed},
      Amount{"copy_speed", network.copy_speed},
  };
  for (const Amount& each : amounts) {
    if (!std::isfinite(each.value) || each.value < 0) return refuse(each.name, "0 or more");
  }
  if (network.ranks_per_host == 0) return refuse("ranks_per_host", "1 or more");
  if (network.nics_per_host == 0) return refuse("nics_per_host", "1 or more");
  if (!(network.background >= 0 && network.background < 1)) {
    return refuse("background", "0 or more, and less than 1");
  }
  for (const double each : {network.leaf_oversubscription, network.pod_oversubscription}) {
    if (!std::isfinite(each) || each <= 0) return refuse("an oversubscription", "more than 0");
  }
  if (network.leaves_per_pod > 0 && network.hosts_per_leaf == 0) {
    return refuse("hosts_per_leaf", "1 or more where there are pods");
  }
  return {};
}

std::span<const Preset> presets() noexcept { return table; }

Network sharing_memory(Network network) noexcept {
  network.host_latency = shared_memory.host_latency;
  network.host_overhead = shared_memory.host_overhead;
  network.host_bandwidth = shared_memory.host_bandwidth;
  network.memory_bandwidth = shared_memory.memory_bandwidth;
  network.host_incast = shared_memory.host_incast;
  return network;
}

Network crowded(Network network, std::uint32_t ranks) noexcept {
  if (ranks <= 1) return network;
  network.ranks_per_core = ranks;
  // Each message of the others, and to hand the processor over takes about as much again.
  for (double* const each : {&network.host_latency, &network.host_overhead, &network.overhead}) {
    *each *= 2.0 * ranks;
  }
  return network;
}

Result<Network> find_preset(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Preset& each : table) {
    if (each.name == name) return each.network;
    names.push_back(each.name);
  }
  std::string why = fmt::format("there is no network {}", quote(name));
  if (const auto nearest = nearest_name(name, names)) why += fmt::format("; {}?", *nearest);
  return Status(StatusCode::not_found, why)
      .with_hint(fmt::format("there are: {}", joined(names, ", ")));
}

}  // namespace hocket::choose
