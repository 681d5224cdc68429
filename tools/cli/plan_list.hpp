// `hocket plan list`: the algorithms there are, and what they cost.
#pragma once

#include <optional>
#include <vector>

#include "plan/catalog.hpp"

namespace hocket::cli {

/// For people, or as JSON; with what each costs in the world of the problem, whose operation and
/// root don't matter, if there is one.
void print_algorithms(const std::vector<const plan::Algorithm*>& algorithms,
                      std::optional<plan::Problem> problem, bool as_json);

}  // namespace hocket::cli
