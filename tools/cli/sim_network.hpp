// The network that `hocket sim` works on, as its command line describes it.
#pragma once

#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "sim/network.hpp"

namespace hocket::cli {

/// A preset, and what is to be different: "latency=10us", "nic_bandwidth=25Gbit".
[[nodiscard]] Result<sim::Network> read_network(const std::string& preset,
                                                const std::vector<std::string>& changes);

/// Rows of a table: each number, what it is in that network, in the words that read_network takes.
[[nodiscard]] std::vector<std::vector<std::string>> describe(const sim::Network& network);

}  // namespace hocket::cli
