// What is wrong with a world, in sentences: who has died, is stopped, never came, or called
// something else; and who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "trace/dump.hpp"

namespace hocket::trace {

/// The likely cause comes first; nothing where all is well. Ranks are those of the world.
[[nodiscard]] std::vector<std::string> findings(const World& world);
/// The same, or that all is well; and what the programs were told of failures.
[[nodiscard]] std::vector<std::string> verdict(const World& world);

}  // namespace hocket::trace
