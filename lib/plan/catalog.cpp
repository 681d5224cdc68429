#include "plan/catalog.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "plan/builders/binomial.hpp"
#include "plan/builders/bruck.hpp"
#include "plan/builders/butterfly.hpp"
#include "plan/builders/canonical.hpp"
#include "plan/builders/circulant.hpp"
#include "plan/builders/direct.hpp"
#include "plan/builders/pipeline.hpp"
#include "plan/builders/ring.hpp"
#include "plan/builders/scan.hpp"
#include "plan/builders/two_level.hpp"

namespace hocket::plan {
namespace {

constexpr std::array algorithms = {
    ring_all_reduce_algorithm,
    circulant_all_reduce_algorithm,
    two_shot_all_reduce_algorithm,
    one_shot_all_reduce_algorithm,
    star_all_reduce_algorithm,
    recursive_doubling_all_reduce_algorithm,
    rabenseifner_all_reduce_algorithm,
    swing_all_reduce_algorithm,
    double_tree_all_reduce_algorithm,
    two_level_all_reduce_algorithm,
    canonical_all_reduce_algorithm,

    ring_reduce_scatter_algorithm,
    circulant_reduce_scatter_algorithm,
    direct_reduce_scatter_algorithm,
    star_reduce_scatter_algorithm,
    halving_reduce_scatter_algorithm,
    two_level_reduce_scatter_algorithm,
    canonical_reduce_scatter_algorithm,

    ring_all_gather_algorithm,
    circulant_all_gather_algorithm,
    direct_all_gather_algorithm,
    star_all_gather_algorithm,
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
    two_level_reduce_algorithm,
    canonical_reduce_algorithm,

    direct_gather_algorithm,
    binomial_gather_algorithm,

    direct_scatter_algorithm,
    binomial_scatter_algorithm,

    direct_all_to_all_algorithm,
    bruck_all_to_all_algorithm,

    dissemination_barrier_algorithm,
    star_barrier_algorithm,

    recursive_doubling_scan_algorithm,
    chain_scan_algorithm,

    recursive_doubling_exscan_algorithm,
    chain_exscan_algorithm,
};

}  // namespace

std::span<const Algorithm> catalog() noexcept { return algorithms; }

const Algorithm* find_algorithm(Operation operation, std::string_view name) noexcept {
  const auto* const found = std::ranges::find_if(algorithms, [&](const Algorithm& each) {
    return each.operation == operation && each.name == name;
  });
  return found == algorithms.end() ? nullptr : found;
}

bool can_solve(const Algorithm& algorithm, const Problem& problem) noexcept {
  if (algorithm.operation != problem.operation || problem.root >= problem.size) return false;
  return problem.contributions == 0 ||
         (takes_contributions(algorithm) && problem.contributions >= problem.size);
}

Bound bound_of(const Algorithm& algorithm, const Problem& problem) {
  return problem.size > 1 ? algorithm.bound(problem) : Bound{};
}

Builder::Builder(const Algorithm& algorithm, const Problem& problem)
    : algorithm_(algorithm),
      writer_(algorithm.name, problem, 0, algorithm.blocks_per_chunk(problem)) {}

Plan Builder::build(std::uint32_t rank, Plan memory) {
  if (algorithm_.symmetry == Symmetry::none) return write(rank, std::move(memory));
  if (!first_) first_ = write(0, {});
  memory = *first_;
  rotate(memory, algorithm_.symmetry, rank);
  return memory;
}

Plan Builder::write(std::uint32_t rank, Plan memory) {
  writer_.restart(rank, std::move(memory));
  if (writer_.size() > 1 || writer_.problem().contributions > 1) {
    algorithm_.build(writer_);
  } else {
    const std::uint32_t all =
        blocks_of(writer_.problem(), writer_.shape(), writer_.rank(), Buffer::out);
    writer_.copy({Buffer::in, 0, all}, {Buffer::out, 0, all});
  }
  return writer_.take();
}

Plan build(const Algorithm& algorithm, const Problem& problem, std::uint32_t rank) {
  return Builder(algorithm, problem).build(rank);
}

std::vector<Plan> build_all(const Algorithm& algorithm, const Problem& problem) {
  std::vector<Plan> plans;
  plans.reserve(problem.size);
  Builder builder(algorithm, problem);
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) plans.push_back(builder.build(rank));
  return plans;
}

}  // namespace hocket::plan
