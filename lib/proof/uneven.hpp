// Whether plans work where chunks differ in size.
#pragma once

#include <span>

#include "plan/plan.hpp"
#include "proof/schedule.hpp"

namespace hocket::plan {

/// Whether everything goes only where what is of the same size is, however large each chunk may be:
/// from a place in the vector to the same place, and of an all-to-all straight from the chunk for a
/// rank to the chunk of a rank. Plans that make_schedule took.
[[nodiscard]] bool allow_uneven_chunks(std::span<const Plan> plans, const Schedule& schedule);

}  // namespace hocket::plan
