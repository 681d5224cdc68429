// What is wrong with a world, in sentences: who has died, is stopped, never came, or called
// something else; and who waits for whom.
#pragma once

#include <string>
#include <vector>

#include "trace/dump.hpp"

namespace hocket::trace {

/// Returns sentences with the likely cause first, or none if all is well. Ranks are those of the
/// world.
[[nodiscard]] std::vector<std::string> findings(const World& world);
/// Returns the findings, or a sentence that all is well, and the errors that the programs received.
[[nodiscard]] std::vector<std::string> verdict(const World& world);

}  // namespace hocket::trace
