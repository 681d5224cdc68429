// Which send each receive gets its message from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/plan.hpp"

namespace hocket::plan {

inline constexpr std::uint32_t no_step = UINT32_MAX;

/// By the numbers of the steps of all ranks in one row, rank by rank.
struct Matches {
  std::vector<std::uint32_t> first;    // step of each rank, and behind the last
  std::vector<std::uint32_t> partner;  // of a send its receive, of a receive its send; or no_step
  std::vector<std::uint32_t> earlier;  // of a send, the one before it on its lane; or no_step
};

/// Plans whose peers exist, by rank. Fails when a send has no receive of as many blocks or the
/// other way round.
[[nodiscard]] Result<Matches> match_lanes(std::span<const Plan> plans);

}  // namespace hocket::plan
