// Proves the plans of ranks that all do the same by one of them.
#pragma once

#include "hocket/status.hpp"

#include "plan/catalog.hpp"
#include "plan/plan.hpp"
#include "proof/proof.hpp"

namespace hocket::proof {

/// Whether that is enough for what is to be found out. All ranks are needed for the canonical tree,
/// for the order of the ranks, and for a barrier, which moves no data.
[[nodiscard]] bool is_proved_by_one(const plan::Algorithm& algorithm,
                                    const VerifyOptions& options) noexcept;

/// Rank 0's plan, of which those of the others are rotations (plan/rotation.hpp): proves of all of
/// them what verify() does, and with what it says, but for two things. It is exact: no random
/// number stands for anything. And it fails where the plans can only go in another order than
/// their own (OrderedRun).
[[nodiscard]] Result<Proof> verify_symmetric(const plan::Plan& plan, plan::Symmetry symmetry,
                                             const VerifyOptions& options = {});

}  // namespace hocket::proof
