#include "run/environment.hpp"

#include <algorithm>

#include <unistd.h>

#include <fmt/format.h>

namespace hocket::run {
namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

std::vector<std::string> rank_variables(const World& world, int node, int local_rank) {
  const int rank = node * world.ranks_per_node + local_rank;
  const int size = world.nodes * world.ranks_per_node;
  return {
      fmt::format("HOCKET_JOB={}", world.job),
      fmt::format("HOCKET_SECRET={}", world.secret),
      fmt::format("HOCKET_STORE={}", world.store),
      fmt::format("HOCKET_ATTEMPT={}", world.attempt),
      fmt::format("RANK={}", rank),
      fmt::format("WORLD_SIZE={}", size),
      fmt::format("LOCAL_RANK={}", local_rank),
      fmt::format("LOCAL_WORLD_SIZE={}", world.ranks_per_node),
      fmt::format("GROUP_RANK={}", node),
      fmt::format("GROUP_WORLD_SIZE={}", world.nodes),
      "ROLE_NAME=default",
      fmt::format("ROLE_RANK={}", rank),
      fmt::format("ROLE_WORLD_SIZE={}", size),
      fmt::format("MASTER_ADDR={}", world.master_host),
      fmt::format("MASTER_PORT={}", world.master_port),
      fmt::format("TORCHELASTIC_RUN_ID={}", world.job),
      fmt::format("TORCHELASTIC_RESTART_COUNT={}", world.attempt),
      fmt::format("TORCHELASTIC_MAX_RESTARTS={}", world.restarts_max),
      "TORCHELASTIC_USE_AGENT_STORE=False",  // rank 0 serves torch's store itself
  };
}

std::vector<std::string> own_environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::vector<std::string> merge(const std::vector<std::string>& base,
                               const std::vector<std::string>& more) {
  std::vector<std::string> merged;
  for (const std::string& entry : base) {
    const bool is_replaced = std::ranges::any_of(
        more, [&](const std::string& other) { return name_of(other) == name_of(entry); });
    if (!is_replaced) merged.push_back(entry);
  }
  merged.insert(merged.end(), more.begin(), more.end());
  return merged;
}

std::string_view value_of(const std::vector<std::string>& environment, std::string_view name) {
  for (const std::string& entry : environment) {
    if (name_of(entry) == name && entry.size() > name.size()) {
      return std::string_view(entry).substr(name.size() + 1);
    }
  }
  return {};
}

}  // namespace hocket::run
