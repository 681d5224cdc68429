// A network as a few numbers: what the simulator and the cost formulas know of a cluster.
//
// Ranks of one host have numbers in a row. Every rank has a core of its own, which does one thing
// after another: it sends off and takes in messages, reduces and copies; or all ranks take turns on
// a few processors. Hosts hang on leaf switches, leaf switches on pods, and pods on a core that is
// never short of bandwidth; a switch's links to the level above are one link of their bandwidth
// together, in each direction.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::choose {

/// Of TCP over Ethernet. A message that is longer is acknowledged at once.
inline constexpr double packet_bytes = 1448;

/// Times are in seconds, bandwidths and speeds in bytes a second, and 0 is no limit, for each
/// direction alone.
struct Network {
  std::uint32_t ranks_per_host = 1;
  std::uint32_t nics_per_host = 1;  // rank i of a host uses number i mod nics_per_host

  double host_latency = 0.5e-6;  // of a message inside a host; without the overheads
  double latency = 10e-6;        // of a message between hosts
  double hop_latency = 0;        // more for each level above the leaf switch that it climbs to

  double host_overhead = 0.2e-6;  // of each message at the sender's core, and at the receiver's
  double overhead = 1e-6;

  double eager_bytes = 65536;  // up to which a message goes ahead of its receive

  double host_bandwidth = 10e9;   // of a rank, to and from others of its host
  double memory_bandwidth = 0;    // of all messages inside one host together
  double host_incast = 0;         // how much longer a byte takes for each sender more to one rank
  double nic_bandwidth = 1.25e9;  // of a NIC
  double incast = 0;              // how much longer a byte takes for each sender more to one host
  double burst = 0;               // bytes that a NIC has at once after a rest (a token bucket's)
  double background = 0;          // the part of every link between hosts that others take: < 1

  std::uint32_t processors = 0;  // of one machine that is all hosts; 0: each rank has its own
  double handover = 0;           // of a shared processor, from one rank to another
  double acknowledge = 0;        // more for a message of several packets, at its receiver's core
  std::uint32_t ranks_per_core = 1;  // more than 1: what one does the others wait for (crowded)
  double reduce_speed = 10e9;        // of a core, in bytes of the result
  double copy_speed = 10e9;

  std::uint32_t hosts_per_leaf = 0;  // 0: all hosts hang on one switch
  double leaf_oversubscription = 1;  // bandwidth below a leaf switch through that above it
  std::uint32_t leaves_per_pod = 0;  // 0: there are no pods
  double pod_oversubscription = 1;   // bandwidth below a pod's switch through that above it

  friend bool operator==(const Network&, const Network&) = default;
};

/// Fails when a number makes no sense, and says which.
[[nodiscard]] Status check_network(const Network& network);

struct Preset {
  std::string_view name;
  std::string_view summary;
  Network network;
};

/// Of the order of what such networks do; measure yours for more.
[[nodiscard]] std::span<const Preset> presets() noexcept;
[[nodiscard]] Result<Network> find_preset(std::string_view name);
/// What the network of a world is taken for until a tuning file says what it is.
inline constexpr std::string_view usual_network = "tcp";

/// The same, with the costs of shared memory inside a host.
[[nodiscard]] Network sharing_memory(Network network) noexcept;
/// The same, where so many ranks share each processor.
[[nodiscard]] Network crowded(Network network, std::uint32_t ranks) noexcept;

}  // namespace hocket::choose
