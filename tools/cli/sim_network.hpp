// The network that `hocket sim` and `hocket plan explain` reckon with, as the command line
// describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "choose/network.hpp"
#include "plan/problem.hpp"
#include "program/parser.hpp"

namespace hocket::cli {

struct NetworkOptions {
  std::string preset = "ethernet-10g";
  std::vector<std::string> changes = {};  // "latency=10us", "nic_bandwidth=25Gbit"
  std::optional<std::uint32_t> hosts = {};
  std::optional<std::uint32_t> ranks_per_host = {};
};

/// Adds --network, --set, --hosts and --ranks-per-host. Returns the first.
program::Option& add_network_options(program::Parser& parser, NetworkOptions& options);

/// What the options change of `base`, the preset or what was measured, for so many ranks.
[[nodiscard]] Result<choose::Network> read_network(const NetworkOptions& options,
                                                   std::uint32_t ranks,
                                                   const choose::Network& base);
[[nodiscard]] Result<choose::Network> read_network(const NetworkOptions& options,
                                                   std::uint32_t ranks);

/// "64 ranks on 8 hosts, ethernet-10g"
[[nodiscard]] std::string place(const plan::Problem& problem, std::string_view network);

/// Rows of a table: each number, and what it is in that network.
[[nodiscard]] std::vector<std::vector<std::string>> describe(const choose::Network& network);

}  // namespace hocket::cli
