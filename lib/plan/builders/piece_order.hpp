// Which piece goes where and when, for a broadcast in as few rounds as can be (Träff, "Optimal
// Broadcast Schedules in Logarithmic Time"). In a round, all ranks send equally far ahead: by one
// skip after the other, which is a *turn*, and then by the first one again.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/writer.hpp"

namespace hocket::plan {

/// What a rank sends and receives in one round of a broadcast, if it does.
struct PieceRound {
  static constexpr std::uint32_t none = UINT32_MAX;

  std::uint32_t to;
  std::uint32_t sent_piece = none;
  std::uint32_t from;
  std::uint32_t received_piece = none;

  [[nodiscard]] bool sends() const noexcept { return sent_piece != none; }
  [[nodiscard]] bool receives() const noexcept { return received_piece != none; }
};

/// Of the plan's rank, all rounds, in their order.
[[nodiscard]] std::vector<PieceRound> piece_rounds(const PlanWriter& plan);

}  // namespace hocket::plan
