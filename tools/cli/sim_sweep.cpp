#include "sim_sweep.hpp"

#include <algorithm>
#include <utility>

#include "choose/cost.hpp"
#include "simulator/simulate.hpp"

namespace hocket::cli {
namespace {

constexpr std::uint32_t element_bytes = 4;

/// Those of one algorithm, built again only when the number of pieces changes.
struct Plans {
  std::uint32_t pieces = 0;
  std::vector<plan::Plan> by_rank = {};

  void build(const plan::Algorithm& algorithm, const plan::Problem& problem, std::uint32_t ranks) {
    if (pieces == problem.pieces) return;
    pieces = problem.pieces;
    by_rank.clear();
    by_rank.reserve(ranks);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      by_rank.push_back(plan::build(algorithm, problem, rank));
    }
  }
};

/// Of so many ranks. None does more rounds than these, and most do about as many.
std::uint64_t steps(const plan::Algorithm& algorithm, const plan::Problem& problem,
                    std::uint32_t ranks) noexcept {
  return std::uint64_t{2} * ranks * algorithm.bound(problem).rounds;
}

Result<Outcome> run(const Sweep& sweep, const plan::Algorithm& algorithm, std::uint64_t bytes,
                    Plans& plans) {
  plan::Problem problem = sweep.problem;
  const auto size = static_cast<double>(bytes);
  if (!choose::is_pipeline(algorithm)) {
    problem.pieces = 1;
  } else if (problem.pieces == 0) {
    problem.pieces = choose::best_pieces(algorithm, problem, size, sweep.network);
  }
  const bool is_one_enough = sim::are_alike(algorithm, problem.size, sweep.network);
  const std::uint32_t ranks = is_one_enough ? 1 : problem.size;
  Outcome outcome{.algorithm = &algorithm,
                  .pieces = problem.pieces,
                  .is_simulated = steps(algorithm, problem, ranks) <= sweep.steps_max,
                  .bound_seconds = choose::bound_seconds(problem, size, sweep.network)};
  if (!outcome.is_simulated) {
    outcome.seconds = choose::estimate_seconds(algorithm, problem, size, sweep.network);
    return outcome;
  }
  plans.build(algorithm, problem, ranks);
  const sim::SimulateOptions options = {.elements = (bytes + element_bytes - 1) / element_bytes,
                                        .element_bytes = element_bytes};
  auto timing = is_one_enough ? sim::simulate_alike(plans.by_rank.front(), sweep.network, options)
                              : sim::simulate(plans.by_rank, sweep.network, options);
  if (!timing.ok()) return timing.status();
  outcome.seconds = timing->seconds;
  outcome.busiest_link = std::move(timing->busiest_link);
  outcome.busiest_share = timing->busiest_share;
  return outcome;
}

}  // namespace

Result<Outcomes> run(const Sweep& sweep) {
  Outcomes outcomes(sweep.sizes.size());
  for (const plan::Algorithm* algorithm : sweep.algorithms) {
    Plans plans;
    for (std::size_t i = 0; i < sweep.sizes.size(); ++i) {
      auto outcome = run(sweep, *algorithm, sweep.sizes[i], plans);
      if (!outcome.ok()) return outcome.status();
      outcomes[i].push_back(std::move(*outcome));
    }
  }
  return outcomes;
}

std::size_t best(const std::vector<Outcome>& outcomes) noexcept {
  const auto found = std::ranges::min_element(outcomes, {}, &Outcome::seconds);
  return static_cast<std::size_t>(found - outcomes.begin());
}

}  // namespace hocket::cli
