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
/// Of ranks that all do what rank 0 does, each seen from its own place: what rank 0 sends is
/// matched with what it receives from the rank that is as far behind it as the other is ahead.
[[nodiscard]] Result<Matches> match_lanes_of_all(const Plan& of_rank_0);

}  // namespace hocket::plan
