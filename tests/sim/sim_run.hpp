// A world that runs made-up operations over the simulated fabric: all of it follows from a seed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace hocket::testing {

struct SimRunOptions {
  std::uint64_t seed = 0;
  /// Ranks die and links break; what does not fail must be right all the same.
  bool is_deadly = false;
};

/// What went wrong, and how to see it again; nothing when all was well.
[[nodiscard]] std::optional<std::string> run_simulated(const SimRunOptions& options);

}  // namespace hocket::testing
