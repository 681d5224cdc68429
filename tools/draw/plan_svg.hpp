// The plans of a world as a drawing: ranks as rows, rounds as columns, messages as arrows.
#pragma once

#include <span>
#include <string>

#include "plan/plan.hpp"

namespace hocket::draw {

/// Plans that were proved, by rank.
[[nodiscard]] std::string plan_svg(std::span<const plan::Plan> plans);

}  // namespace hocket::draw
