// How much a proof has to keep and to look at. Plans from outside may ask for any amount with few
// bytes: it is counted, and refused, before anything is allocated for it.
#pragma once

#include <cstdint>

#include "hocket/status.hpp"

#include "plan/plan.hpp"

namespace hocket::proof {

class Amount {
 public:
  // Each fails when the plans so far are more than a proof takes (base/limits.hpp).
  /// By what the plan, which passed check_extent, says it has.
  [[nodiscard]] Status add(const plan::Plan& plan);
  /// By what its steps do.
  [[nodiscard]] Status add_steps(const plan::Plan& plan);

 private:
  std::uint64_t steps_ = 0;
  std::uint64_t kept_ = 0;     // blocks, of all buffers
  std::uint64_t touched_ = 0;  // blocks, by each step
};

}  // namespace hocket::proof
