// Proves that the plans of all ranks, together, do what they are for.
//
// Peers are named, lanes are in order and no step depends on data, so that whether the plans come
// to an end, and with what, does not depend on timing. It is therefore enough to run them once,
// with lanes that hold nothing: what ends there ends with any buffering, and with the same values.
//
// A block is two numbers instead of data: the sum of random numbers that stand for what each rank
// contributed (right only if each contribution is in it exactly once), and a hash of how they were
// combined (the same on two ranks only if both combined in the same tree, hence with the same
// bits).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/catalog.hpp"
#include "plan/plan.hpp"
#include "proof/amount.hpp"
#include "proof/heard.hpp"
#include "proof/ordered_run.hpp"
#include "proof/proof.hpp"
#include "proof/races.hpp"
#include "proof/uneven.hpp"
#include "proof/values.hpp"

namespace hocket::proof {

/// Whether the plans cost what the algorithm's bound says, take the chunks that it says, and
/// combine in the tree that it says.
[[nodiscard]] Status check_promises(const plan::Algorithm& algorithm, const plan::Problem& problem,
                                    const Proof& proof);

/// Proves one world after the other in the same memory.
class Verifier {
 public:
  /// The plans by rank, of one problem, from anywhere: what is too much is refused before anything
  /// is allocated for it (base/limits.hpp). A failure names rank, step and block, and what was
  /// expected. It proves:
  /// - every range is inside its buffer, nothing writes `in`, every send has its receive;
  /// - no steps wait for each other in a cycle;
  /// - of two steps of a rank that touch one block, and not both only read it, one waits for the
  /// other;
  /// - nothing that is undefined is read, and all results are right, on all ranks by the same tree;
  /// with Problem::contributions by the canonical tree, which is the same at every size.
  [[nodiscard]] Result<Proof> verify(std::span<const plan::Plan> plans,
                                     const VerifyOptions& options = {});

  /// The same of plans from the catalog, of as much as memory allows; by the plan of one rank, if
  /// that is enough.
  [[nodiscard]] Result<Proof> build_and_verify(const plan::Algorithm& algorithm,
                                               const plan::Problem& problem,
                                               const VerifyOptions& options = {});

  /// About what it takes for each step of all ranks, and for each of their blocks that is touched.
  static constexpr std::uint64_t bytes_per_step = OrderedRun::bytes_per_step;
  static constexpr std::uint64_t bytes_per_block = Values::bytes_per_block;

 private:
  [[nodiscard]] static Status check_place(std::span<const plan::Plan> plans, std::size_t rank);
  [[nodiscard]] Status check_and_count(const plan::Plan& plan, Proof& proof);
  /// Plans that are in order_, which has their steps.
  [[nodiscard]] Status run_in_order(std::span<const plan::Plan> plans, const VerifyOptions& options,
                                    Proof& proof);
  void start(std::span<const plan::Plan> plans, const VerifyOptions& options);
  [[nodiscard]] Status run(std::span<const Event> events);
  /// Behind the run that ended so.
  [[nodiscard]] Result<Proof> finish(Status status, Proof proof) const;
  [[nodiscard]] Status check_results() const;

  std::vector<plan::Plan> plans_;  // that were built, without their steps
  Races races_;
  OrderedRun order_;
  Uneven uneven_;
  bool allows_uneven_ = true;
  Values apart_;
  Values in_place_;
  Values ordered_;
  Heard heard_;
  VerifyOptions options_;
  bool is_barrier_ = false;
};

/// One world.
[[nodiscard]] Result<Proof> verify(std::span<const plan::Plan> plans,
                                   const VerifyOptions& options = {});

}  // namespace hocket::proof
