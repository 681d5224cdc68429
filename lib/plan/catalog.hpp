// Every algorithm there is: its name, what it solves, and what it promises.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"
#include "plan/rotation.hpp"
#include "plan/writer.hpp"

namespace hocket::plan {

/// What the plans cost; the verifier holds every builder to it.
struct Bound {
  /// Messages one after the other, where a rank sends one and receives one at a time.
  std::uint64_t rounds = 0;
  std::uint64_t blocks_sent = 0;  // by one rank
  bool rounds_are_exact = true;   // else no plan takes more, and some take fewer
  // For the cost formulas (choose/cost.hpp), where they differ from what follows from the others:
  std::uint64_t hops = 0;            // rounds, where a rank does any number of things at once
  std::uint64_t blocks_in_line = 0;  // one after the other, by several ranks
};

/// Into how many blocks most algorithms divide a chunk.
[[nodiscard]] constexpr std::uint32_t undivided(const Problem& /*problem*/) noexcept { return 1; }
[[nodiscard]] constexpr std::uint32_t one_for_each_rank(const Problem& problem) noexcept {
  return problem.size;
}

/// To which ranks the others send: where hosts have several ranks, it decides how much goes through
/// their NICs, which the cost formulas (choose/legs.hpp) must know.
enum class Reach : std::uint8_t {
  all,            // every other one
  next,           // the next one
  powers,         // those a power of two away, or about that, as much to each
  halves,         // the same, but half of all to the farthest, a quarter to the next, and so on
  paired_halves,  // the same, in pairs, so that those at the border of a host are like the others
  nearest_first,  // the same, but half of all to the nearest
  subtrees,       // as halves, but one rank of each host speaks for those behind it
  rotating,       // those of powers, in turns, a piece each time
  trees,          // parents and children in two binary trees
  hosts,          // those of its host, and those with its slot on others
  star,           // rank 0, and that to all others
};

struct Algorithm {
  std::string_view name;
  Operation operation;
  std::string_view summary;  // one line for people: what it does, and where it wins
  /// Writes the plan of the writer's rank: every size above 1, every root and number of pieces. Of
  /// a canonical one also size 1; of a symmetric one only that of rank 0.
  void (*build)(PlanWriter& plan);
  /// Into how many blocks a chunk is divided.
  std::uint32_t (*blocks_per_chunk)(const Problem& problem) = undivided;
  Bound (*bound)(const Problem& problem);  // sizes above 1
  /// Whether chunks may differ in size, as those of an all_gather_v do.
  bool allows_uneven = false;
  bool knows_hosts = false;  // what it does depends on Problem::ranks_per_host
  /// Whether no rank touches what it moves: its plans only send from `in` and `out` and receive
  /// into them, where these are in place; or, of an all-to-all, where nobody has anything for
  /// itself. So it may be memory that only adapters reach.
  bool only_moves = false;
  bool is_canonical = false;  // it combines in the canonical tree (builders/canonical.hpp)
  /// Whether it combines the ranks' vectors in the order of their ranks, however grouped, so that
  /// it is right also for ops that are not commutative.
  bool keeps_order = false;
  Reach reach = Reach::all;
  /// Whether all ranks do the same, whatever their number; so not with a root. Others' plans are
  /// then made of rank 0's, and one proof of that is one of all.
  Symmetry symmetry = Symmetry::none;
};

[[nodiscard]] std::span<const Algorithm> catalog() noexcept;
/// Null when there is none of that name for the operation.
[[nodiscard]] const Algorithm* find_algorithm(Operation operation, std::string_view name) noexcept;

/// Whether it takes any number of Problem::contributions, for which it gives the same bits at every
/// size.
[[nodiscard]] constexpr bool takes_contributions(const Algorithm& algorithm) noexcept {
  return algorithm.is_canonical && algorithm.operation == Operation::all_reduce;
}

/// Whether the algorithm is one for this problem, and the problem one that there can be.
[[nodiscard]] bool can_solve(const Algorithm& algorithm, const Problem& problem) noexcept;

/// Nothing for a world of one.
[[nodiscard]] Bound bound_of(const Algorithm& algorithm, const Problem& problem);

/// Builds the plans of one world. All of a problem that the algorithm can solve.
class Builder {
 public:
  Builder(const Algorithm& algorithm, const Problem& problem);

  /// Of one rank, in the memory of a plan that is no longer needed.
  [[nodiscard]] Plan build(std::uint32_t rank, Plan memory = {});

 private:
  [[nodiscard]] Plan write(std::uint32_t rank, Plan memory);

  const Algorithm& algorithm_;
  PlanWriter writer_;
  std::optional<Plan> first_;  // rank 0's, of a symmetric one
};

[[nodiscard]] Plan build(const Algorithm& algorithm, const Problem& problem, std::uint32_t rank);
/// The plans of all ranks.
[[nodiscard]] std::vector<Plan> build_all(const Algorithm& algorithm, const Problem& problem);

}  // namespace hocket::plan
