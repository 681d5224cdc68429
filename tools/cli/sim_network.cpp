#include "sim_network.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "choose/parameters.hpp"
#include "failure.hpp"

namespace hocket::cli {
namespace {

Status change(choose::Network& network, std::string_view text) {
  std::string_view value = text;
  const std::string_view name = take_until(value, "=");
  if (name.size() == text.size()) {
    return refuse(fmt::format("--set {}: that is no NAME=VALUE of a network", text));
  }
  Status status = set_parameter(network, name, value);
  if (status.ok()) return status;
  return refuse(fmt::format("--set {}: {}", text, status.what()))
      .with_hint(std::string(status.hint()));
}

}  // namespace

program::Option& add_network_options(program::Parser& parser, NetworkOptions& options) {
  program::Option& network =
      parser
          .add_option("--network", &options.preset,
                      "What connects the hosts (see `hocket sim --networks`)")
          .with_default();
  parser.add_option("--set", &options.changes,
                    "NAME=VALUE: a number of the network, such as "
                    "latency=10us or nic_bandwidth=25Gbit");
  parser.add_option("--hosts", &options.hosts, "Hosts, over which the ranks are spread");
  parser.add_option("--ranks-per-host", &options.ranks_per_host, "Or so many ranks on each");
  return network;
}

Result<choose::Network> read_network(const NetworkOptions& options, std::uint32_t ranks,
                                     const choose::Network& base) {
  choose::Network network = base;
  for (const std::string& each : options.changes) {
    if (Status status = change(network, each); !status.ok()) return status;
  }
  if (Status status = check_network(network); !status.ok()) return status;
  if (options.hosts && options.ranks_per_host) return refuse("give --hosts or --ranks-per-host");
  if (options.hosts == 0U || options.ranks_per_host == 0U) return refuse("0 hosts or ranks a host");
  if (options.hosts) network.ranks_per_host = (ranks - 1) / *options.hosts + 1;
  if (options.ranks_per_host) network.ranks_per_host = *options.ranks_per_host;
  return network;
}

Result<choose::Network> read_network(const NetworkOptions& options, std::uint32_t ranks) {
  auto preset = choose::find_preset(options.preset);
  if (!preset.ok()) return preset;
  return read_network(options, ranks, *preset);
}

std::string place(const plan::Problem& problem, std::string_view network) {
  const std::uint32_t hosts = (problem.size - 1) / problem.ranks_per_host + 1;
  return fmt::format("{} rank{} on {} host{}, {}", problem.size, problem.size == 1 ? "" : "s",
                     hosts, hosts == 1 ? "" : "s", network);
}

std::vector<std::vector<std::string>> describe(const choose::Network& network) {
  std::vector<std::vector<std::string>> rows;
  for (const choose::Parameter& each : parameters(network)) {
    rows.push_back({std::string(each.name), each.value});
  }
  return rows;
}

}  // namespace hocket::cli
