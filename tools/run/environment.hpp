// The environment of the ranks: Hocket's variables, and torchrun's under their own names.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::run {

/// What all ranks of a job share.
struct World {
  std::string job = {};
  std::string secret = {};
  std::string store = {};        // host:port of the launcher's store
  std::string master_host = {};  // of programs that bring a store of their own, as torch's do
  std::uint16_t master_port = 0;
  int nodes = 1;
  int ranks_per_node = 1;
  int attempt = 0;
  int restarts_max = 0;
};

/// "NAME=value" for each variable of this rank.
[[nodiscard]] std::vector<std::string> rank_variables(const World& world, int node, int local_rank);

/// The environment of this process.
[[nodiscard]] std::vector<std::string> own_environment();

/// `base` with `more`, which wins where both have a name.
[[nodiscard]] std::vector<std::string> merge(const std::vector<std::string>& base,
                                             const std::vector<std::string>& more);

/// Empty when it is not there.
[[nodiscard]] std::string_view value_of(const std::vector<std::string>& environment,
                                        std::string_view name);

}  // namespace hocket::run
