#include "plan/catalog.hpp"

#include <algorithm>
#include <array>

#include "plan/builders/barrier.hpp"
#include "plan/builders/binomial.hpp"
#include "plan/builders/bruck.hpp"
#include "plan/builders/butterfly.hpp"
#include "plan/builders/circulant.hpp"
#include "plan/builders/direct.hpp"
#include "plan/builders/pipeline.hpp"
#include "plan/builders/ring.hpp"
#include "plan/builders/two_level.hpp"

namespace hocket::plan {
namespace {

constexpr std::array algorithms = {
    ring_all_reduce_algorithm,
    circulant_all_reduce_algorithm,
    two_shot_all_reduce_algorithm,
    one_shot_all_reduce_algorithm,
    recursive_doubling_all_reduce_algorithm,
    rabenseifner_all_reduce_algorithm,
    swing_all_reduce_algorithm,
    double_tree_all_reduce_algorithm,
    two_level_all_reduce_algorithm,

    ring_reduce_scatter_algorithm,
    circulant_reduce_scatter_algorithm,
    direct_reduce_scatter_algorithm,
    halving_reduce_scatter_algorithm,
    two_level_reduce_scatter_algorithm,

    ring_all_gather_algorithm,
    circulant_all_gather_algorithm,
    bruck_all_gather_algorithm,
    direct_all_gather_algorithm,
    doubling_all_gather_algorithm,
    two_level_all_gather_algorithm,

    binomial_broadcast_algorithm,
    chain_broadcast_algorithm,
    double_tree_broadcast_algorithm,
    circulant_broadcast_algorithm,
    scatter_all_gather_broadcast_algorithm,
    two_level_broadcast_algorithm,

    binomial_reduce_algorithm,
    chain_reduce_algorithm,
    double_tree_reduce_algorithm,
    circulant_reduce_algorithm,
    reduce_scatter_gather_reduce_algorithm,

    direct_gather_algorithm,
    binomial_gather_algorithm,

    direct_scatter_algorithm,
    binomial_scatter_algorithm,

    direct_all_to_all_algorithm,
    bruck_all_to_all_algorithm,

    dissemination_barrier_algorithm,
};

}  // namespace

std::span<const Algorithm> catalog() noexcept { return algorithms; }

const Algorithm* find_algorithm(Operation operation, std::string_view name) noexcept {
  const auto* const found = std::ranges::find_if(algorithms, [&](const Algorithm& each) {
    return each.operation == operation && each.name == name;
  });
  return found == algorithms.end() ? nullptr : found;
}

Bound bound_of(const Algorithm& algorithm, const Problem& problem) {
  return problem.size > 1 ? algorithm.bound(problem) : Bound{};
}

namespace {

void write(const Algorithm& algorithm, PlanWriter& plan) {
  if (plan.size() > 1) return algorithm.build(plan);
  const std::uint32_t all = plan.shape().vector_blocks();
  plan.copy({Buffer::in, 0, all}, {Buffer::out, 0, all});
}

}  // namespace

Plan build(const Algorithm& algorithm, const Problem& problem, std::uint32_t rank) {
  PlanWriter plan(algorithm.name, problem, rank, algorithm.blocks_per_chunk(problem));
  write(algorithm, plan);
  return plan.take();
}

std::vector<Plan> build_all(const Algorithm& algorithm, const Problem& problem) {
  std::vector<Plan> plans;
  build_all(algorithm, problem, plans);
  return plans;
}

void build_all(const Algorithm& algorithm, const Problem& problem, std::vector<Plan>& plans) {
  plans.resize(problem.size);
  PlanWriter plan(algorithm.name, problem, 0, algorithm.blocks_per_chunk(problem));
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
    if (rank > 0) {
      // Most plans of a world are about as long.
      plans[rank].steps.reserve(plans[rank - 1].steps.size());
      plans[rank].after.reserve(plans[rank - 1].after.size());
    }
    plan.restart(rank, std::move(plans[rank]));
    write(algorithm, plan);
    plans[rank] = plan.take();
  }
}

}  // namespace hocket::plan
