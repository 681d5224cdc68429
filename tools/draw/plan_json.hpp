// The plans of a world as JSON, in the form that docs/plans.md describes.
#pragma once

#include <span>
#include <string>

#include "plan/plan.hpp"

namespace hocket::draw {

/// Plans of one problem, by rank; at least one.
[[nodiscard]] std::string plan_json(std::span<const plan::Plan> plans);

}  // namespace hocket::draw
