// Plans of ranks that are numbered in another order than their own.
#pragma once

#include <cstdint>
#include <span>

#include "plan/plan.hpp"

namespace hocket::plan {

/// Makes the plan of rank i that of rank `ranks[i]`, and so of all whom it talks to, and of the
/// root. All ranks must do that. Only for operations that are is_of_whole_vectors(), because the
/// blocks keep their numbers.
void renumber(Plan& plan, std::span<const std::uint32_t> ranks) noexcept;

}  // namespace hocket::plan
