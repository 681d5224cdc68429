#include "plan/builders/piece_order.hpp"

#include <algorithm>
#include <bit>

#include "plan/builders/phases.hpp"

namespace hocket::plan {
namespace {

using Skips = std::vector<std::uint32_t>;  // of a turn, and the number of ranks behind them
/// For each round of a turn, which piece comes to a rank, counted from the first one that the root
/// sends in that turn. One is not negative: it is new in that turn, and the others are older.
using Arrivals = std::vector<std::int64_t>;

/// The highest of the bits below `end`, of which there is one.
std::uint32_t highest_below(std::uint64_t bits, std::uint32_t end) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(bits & ((std::uint64_t{1} << end) - 1)) - 1);
}

/// Every distance is a sum of skips, each the greatest that fits: the last of them is the skip by
/// which the new piece goes that the rank there gets.
std::uint32_t new_piece(const Skips& skips, std::uint32_t distance) noexcept {
  auto skip = static_cast<std::uint32_t>(skips.size() - 1);
  while (distance > 0) {
    --skip;
    if (skips[skip] <= distance) distance -= skips[skip];
  }
  return skip;
}

/// What comes in a round is the newest of the new pieces of the ranks between two skips back, of
/// those that come in no other round. The search goes by sums of falling skips, on from the root;
/// it takes about four steps for each skip there is.
Arrivals arrivals_at(const Skips& skips, std::uint32_t distance) {
  const auto turn = static_cast<std::uint32_t>(skips.size() - 1);
  const std::uint32_t own = new_piece(skips, distance);
  std::uint64_t left = ((std::uint64_t{1} << turn) - 1) & ~(std::uint64_t{1} << own);
  const std::uint64_t here = std::uint64_t{skips[turn]} + distance;  // once around the ring
  std::vector<std::uint32_t> path = {turn};
  std::uint64_t sum = skips[turn];
  std::uint32_t last = turn;  // that was tried
  std::uint64_t used = here;  // the sum that the round before has found
  Arrivals arrivals;
  const auto step_back = [&] {
    last = path.back();
    path.pop_back();
    sum -= skips[last];
  };
  while (arrivals.size() < turn) {
    const std::uint64_t nearest = here - skips[arrivals.size()];
    const std::uint64_t farthest = here - skips[arrivals.size() + 1];
    const bool has_lower = (left & ((std::uint64_t{1} << last) - 1)) != 0;
    if (sum > nearest || sum >= used) {
      step_back();
    } else if (sum < farthest || (sum == farthest && has_lower)) {
      last = highest_below(left, last);
      path.push_back(last);
      sum += skips[last];
    } else {
      used = sum;
      step_back();
      left &= ~(std::uint64_t{1} << last);
      arrivals.push_back(last == turn ? own : std::int64_t{last} - turn);
    }
  }
  return arrivals;
}

}  // namespace

std::vector<PieceRound> piece_rounds(const PlanWriter& plan) {
  const Skips skips = skips_of(plan.size());
  const std::uint32_t pieces = plan.problem().pieces;
  const std::uint32_t distance = from_root(plan);
  const auto turn = static_cast<std::uint32_t>(skips.size() - 1);
  const std::uint32_t rounds = pieces - 1 + turn;
  const std::uint32_t left_out = (turn - rounds % turn) % turn;  // so that the last turn is whole
  const auto piece = [&](const Arrivals& arrivals, std::uint32_t round) {
    const std::int64_t first = std::int64_t{round - round % turn} - left_out;
    const std::int64_t arriving = first + arrivals[round % turn];
    return arriving < 0 ? PieceRound::none
                        : static_cast<std::uint32_t>(std::min<std::int64_t>(arriving, pieces - 1));
  };
  const Arrivals here = distance == 0 ? Arrivals{} : arrivals_at(skips, distance);
  std::vector<Arrivals> there;  // by round of a turn
  for (std::uint32_t i = 0; i < turn; ++i) {
    const std::uint32_t receiver = (distance + skips[i]) % plan.size();
    there.push_back(receiver == 0 ? Arrivals{} : arrivals_at(skips, receiver));
  }
  std::vector<PieceRound> all;
  for (std::uint32_t round = left_out; round < left_out + rounds; ++round) {
    const std::uint32_t skip = skips[round % turn];
    const Arrivals& to = there[round % turn];
    all.push_back({.to = plan.ahead(skip),
                   .sent_piece = to.empty() ? PieceRound::none : piece(to, round),
                   .from = plan.behind(skip),
                   .received_piece = here.empty() ? PieceRound::none : piece(here, round)});
  }
  return all;
}

}  // namespace hocket::plan
