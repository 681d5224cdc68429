// Whether the plan of one rank, taken for itself, makes sense. Plans from outside pass this before
// anything else looks at them.
#pragma once

#include <cstdint>
#include <string>

#include "hocket/status.hpp"

#include "plan/plan.hpp"
#include "proof/races.hpp"

namespace hocket::proof {

/// The problem and the shape are such as there can be.
[[nodiscard]] Status check_extent(const plan::Plan& plan);

/// That, and steps are of known kinds, every range is inside its buffer, blocks go where blocks of
/// their size are if all chunks have one size, `in` is never written, peers exist, steps wait for
/// earlier ones only; and of two steps that touch one block, and not both only read it, one waits
/// for the other, also where in and out are the same memory.
[[nodiscard]] Status check_plan(const plan::Plan& plan);
/// In memory that is kept.
[[nodiscard]] Status check_plan(const plan::Plan& plan, Races& races);

}  // namespace hocket::proof
