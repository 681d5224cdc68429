// Plans run on real numbers, in an order that a seed makes up: the second opinion on what verify()
// proves, for worlds small enough.
#pragma once

#include <cstdint>
#include <span>

#include "hocket/status.hpp"

#include "plan/layout.hpp"
#include "plan/plan.hpp"

namespace hocket::proof {

struct RehearsalOptions {
  plan::ChunkSizes sizes;
  bool in_place = false;
  std::uint64_t seed = 1;
};

/// Plans that passed check_plan and match_lanes, by rank; not of a barrier, which moves nothing.
/// Any step whose time has come may be the next. A send is taken in at once, or not before its
/// receive is there, as the seed will have it. Fails when nothing can go on, or a result is wrong.
[[nodiscard]] Status rehearse(std::span<const plan::Plan> plans, const RehearsalOptions& options);

}  // namespace hocket::proof
