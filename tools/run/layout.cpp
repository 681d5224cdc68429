#include "run/layout.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "net/interfaces.hpp"
#include "run/environment.hpp"

namespace hocket::run {
namespace {

constexpr std::array<std::string_view, 8> exported_prefixes = {
    "HOCKET_", "NCCL_", "GLOO_", "UCX_", "TORCH_", "PYTORCH_", "OMP_", "CUDA_VISIBLE_DEVICES="};

Status wrong(std::string what, std::string hint) {
  return Status(StatusCode::invalid_argument, std::move(what)).with_hint(std::move(hint));
}

Result<std::vector<Host>> read_hosts(const Options& options) {
  if (!options.hosts.empty()) return parse_hosts(options.hosts);
  std::ifstream file(options.host_file, std::ios::binary);
  if (!file) {
    return wrong(fmt::format("{} can't be read", options.host_file),
                 "--hostfile names a file with a host on each line");
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  return parse_host_file(text, options.host_file);
}

Status check_combination(const Options& options) {
  const bool names_hosts = !options.hosts.empty() || !options.host_file.empty();
  if (!options.hosts.empty() && !options.host_file.empty()) {
    return wrong("--hosts and --hostfile both name the hosts", "give one of them");
  }
  if (names_hosts && options.nodes > 1) {
    return wrong("--nnodes and a list of hosts exclude each other",
                 "with --nnodes a scheduler starts the launcher on every node");
  }
  if (options.node < 0 || options.node >= options.nodes) {
    return wrong(fmt::format("there is no node {} among {}", options.node, options.nodes),
                 "--node-rank counts from 0 to --nnodes less one");
  }
  if (options.nodes > 1 && options.master.empty()) {
    return wrong("--nnodes needs --master HOST:PORT", "it is the address of node 0, for all nodes");
  }
  return {};
}

/// By which name the others reach the first host.
std::string meeting_host(const std::vector<Host>& hosts) {
  if (std::ranges::all_of(hosts, is_here)) return "127.0.0.1";
  return is_here(hosts.front()) ? own_host_name() : address_of(hosts.front());
}

/// For a shell that takes it apart again.
std::string shell_quoted(std::string_view word) {
  std::string to = "'";
  for (const char each : word) to += each == '\'' ? "'\\''" : std::string(1, each);
  return to + "'";
}

std::string shown(std::string_view word) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  const bool is_plain = !word.empty() && word.find_first_not_of(plain) == word.npos;
  return is_plain ? std::string(word) : shell_quoted(word);
}

/// Those of -x; what is not set here is left out.
std::vector<std::string> named_variables(const Options& options) {
  const std::vector<std::string> own = own_environment();
  std::vector<std::string> named;
  for (const std::string& each : options.exports) {
    const bool has_value = each.find('=') != std::string::npos;
    const auto found = std::ranges::find_if(
        own, [&](const std::string& entry) { return entry.starts_with(each + '='); });
    if (has_value) named.push_back(each);
    if (!has_value && found != own.end()) named.push_back(*found);
  }
  return named;
}

}  // namespace

Result<Layout> make_layout(const Options& options) {
  if (Status status = check_combination(options); !status.ok()) return status;
  Layout layout = {.has_agents = !options.hosts.empty() || !options.host_file.empty(),
                   .nodes = options.nodes};
  if (layout.has_agents) {
    auto hosts = read_hosts(options);
    if (!hosts.ok()) return hosts.status();
    layout.hosts = std::move(*hosts);
    layout.nodes = static_cast<int>(layout.hosts.size());
  } else {
    layout.hosts = {{.name = own_host_name(), .slots = 1, .slots_max = options.ranks}};
  }
  const auto ranks = ranks_of_each(layout.hosts, options.ranks);
  if (!ranks.ok()) return ranks.status();
  layout.ranks_per_node = *ranks;
  if (layout.ranks_per_node > limits::world_size_max / layout.nodes) {
    return wrong(fmt::format("{} nodes of {} ranks are too many", layout.nodes, *ranks),
                 fmt::format("a job has at most {} ranks", limits::world_size_max));
  }
  layout.store.host = layout.has_agents ? meeting_host(layout.hosts) : "127.0.0.1";
  if (!options.master.empty()) {
    const auto master = net::parse_endpoint(options.master);
    if (!master.ok()) return master.status();
    layout.store = *master;
  }
  if (options.nodes > 1 && layout.store.port == 0) {
    return wrong(fmt::format("--master {} has no port that all nodes know", options.master),
                 "with --nnodes it is a port that is free on node 0, as in node0:29500");
  }
  layout.listen = {.host = net::is_loopback(layout.store.host) ? layout.store.host : "",
                   .port = layout.store.port};
  return layout;
}

std::vector<std::string> agent_command(const Options& options, const Host& host) {
  const std::string here = std::filesystem::read_symlink("/proc/self/exe").string();
  if (is_here(host)) return {here, "run", "--agent"};
  std::vector<std::string> words;
  std::string_view rest = options.rsh;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (end > 0) words.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  words.push_back(host.name);
  words.push_back(fmt::format("exec {} run --agent",
                              shell_quoted(options.hocket.empty() ? here : options.hocket)));
  return words;
}

std::vector<std::string> exported_variables(const Options& options) {
  const std::vector<std::string> own = own_environment();
  std::vector<std::string> exported;
  for (const std::string& entry : own) {
    const bool goes = std::ranges::any_of(
        exported_prefixes, [&](std::string_view prefix) { return entry.starts_with(prefix); });
    if (goes && !entry.starts_with("HOCKET_SECRET=")) exported.push_back(entry);
  }
  return merge(exported, named_variables(options));
}

void show(const Options& options, const Layout& layout) {
  World world = {.job = options.job.empty() ? "(made up)" : options.job,
                 .secret = "(not shown)",
                 .store = layout.store.port == 0 ? fmt::format("{}:(picked)", layout.store.host)
                                                 : layout.store.to_string(),
                 .master_host = layout.store.host,
                 .nodes = layout.nodes,
                 .ranks_per_node = layout.ranks_per_node,
                 .restarts_max = options.restarts_max};
  const std::vector<std::string> named = named_variables(options);
  std::vector<std::string> words(options.command.size());
  std::ranges::transform(options.command, words.begin(), shown);
  for (std::size_t i = 0; i < layout.hosts.size(); ++i) {
    fmt::print("{}\n", layout.hosts[i].name);
    if (layout.has_agents) {
      fmt::print("  started by: {}\n", joined(agent_command(options, layout.hosts[i]), " "));
    }
    const int node = layout.has_agents ? static_cast<int>(i) : options.node;
    for (int local = 0; local < layout.ranks_per_node; ++local) {
      fmt::print("  rank {}: {}\n", node * layout.ranks_per_node + local, joined(words, " "));
      for (const std::string& variable : rank_variables(world, node, local)) {
        const bool is_picked = variable.starts_with("MASTER_PORT=");
        fmt::print("    {}\n", is_picked ? "MASTER_PORT=(picked)" : variable);
      }
      for (const std::string& variable : named) fmt::print("    {}\n", variable);
    }
  }
}

}  // namespace hocket::run
