// The plans of a world as a chart of characters: ranks as rows, rounds as columns.
#pragma once

#include <span>
#include <string>

#include "plan/plan.hpp"
#include "proof/verify.hpp"

namespace hocket::draw {

/// Plans that were proved, by rank. Of a large world the first ranks and rounds, which it says.
[[nodiscard]] std::string plan_chart(std::span<const plan::Plan> plans, const proof::Proof& proof);

}  // namespace hocket::draw
