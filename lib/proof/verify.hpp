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

#include <cstdint>
#include <span>

#include "hocket/status.hpp"

#include "plan/catalog.hpp"
#include "plan/plan.hpp"

namespace hocket::plan {

struct Proof {
  std::uint64_t steps = 0;
  std::uint64_t messages = 0;
  std::uint64_t blocks_sent = 0;  // by the rank that sends most
  std::uint64_t rounds = 0;       // where a rank sends and receives one message at a time, in order
  bool allows_uneven = false;     // chunks may differ in size
  bool is_canonical = false;      // what is reduced is combined in the canonical tree
};

/// Whether the plans cost what the algorithm's bound says, take the chunks that it says, and
/// combine in the tree that it says.
[[nodiscard]] Status check_promises(const Algorithm& algorithm, const Problem& problem,
                                    const Proof& proof);

struct VerifyOptions {
  bool in_place = false;  // in and out are the same memory, where the operation allows it
  std::uint64_t seed = 1;
};

/// The plans by rank, of one problem, from anywhere. A failure names rank, step and
/// block, and what was expected. It proves:
/// - every range is inside its buffer, nothing writes `in`, every send has its receive;
/// - no step waits in a circle;
/// - of two steps of a rank that touch one block, and not both only read it, one waits for the
/// other;
/// - nothing that is undefined is read, and all results are right, on all ranks by the same tree;
/// with Problem::contributions by the canonical tree, which is the same at every size.
[[nodiscard]] Result<Proof> verify(std::span<const Plan> plans, const VerifyOptions& options = {});

}  // namespace hocket::plan
