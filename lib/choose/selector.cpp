#include "choose/selector.hpp"

#include <algorithm>
#include <utility>

#include "choose/cost.hpp"

namespace hocket::choose {

using plan::Algorithm;
using plan::Problem;

namespace {

bool may_do(const Algorithm& algorithm, const Problem& problem, const Needs& needs) noexcept {
  return can_solve(algorithm, problem) && (algorithm.allows_uneven || !needs.is_uneven) &&
         (algorithm.only_moves || !needs.only_moves) &&
         (algorithm.keeps_order || !needs.keeps_order);
}

}  // namespace

Selector::Selector(const Network& network, std::vector<Rule> rules)
    : network_(network), rules_(std::move(rules)) {}

Selector Selector::with_ranks_per_host(std::uint32_t ranks) const {
  Selector copy = *this;
  copy.network_.ranks_per_host = ranks;
  return copy;
}

Choice Selector::priced(const Algorithm& algorithm, const Problem& problem, std::uint64_t bytes,
                        std::uint32_t pieces) const {
  const auto size = static_cast<double>(bytes);
  Problem cut = problem;
  cut.pieces = pieces > 0 ? pieces : best_pieces(algorithm, problem, size, network_);
  return {.algorithm = &algorithm,
          .pieces = cut.pieces,
          .seconds = estimate_seconds(algorithm, cut, size, network_)};
}

Choice Selector::choose(const Problem& problem, std::uint64_t bytes, const Needs& needs) const {
  for (const Rule& rule : rules_) {
    if (!may_do(*rule.algorithm, problem, needs) || !rule.bytes.holds(bytes) ||
        !rule.ranks.holds(problem.size)) {
      continue;
    }
    Choice choice = priced(*rule.algorithm, problem, bytes, rule.pieces);
    choice.rule = &rule;
    return choice;
  }
  Choice best;
  for (const Algorithm& algorithm : plan::catalog()) {
    if (!may_do(algorithm, problem, needs)) continue;
    const Choice choice = priced(algorithm, problem, bytes, 0);
    if (best.algorithm == nullptr || choice.seconds < best.seconds) best = choice;
  }
  return best;
}

std::vector<Choice> Selector::candidates(const Problem& problem, std::uint64_t bytes,
                                         const Needs& needs) const {
  std::vector<Choice> all;
  for (const Algorithm& algorithm : plan::catalog()) {
    if (may_do(algorithm, problem, needs)) all.push_back(priced(algorithm, problem, bytes, 0));
  }
  std::ranges::stable_sort(all, {}, &Choice::seconds);
  return all;
}

}  // namespace hocket::choose
