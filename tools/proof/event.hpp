// What happens when plans run.
#pragma once

#include <cstdint>

#include "plan/step.hpp"

namespace hocket::proof {

/// A step of some rank.
struct StepId {
  std::uint32_t rank = 0;
  std::uint32_t step = 0;
};

/// What happens at once: a step of one rank, or a message from its send to its receive.
struct Event {
  StepId step;     // the send, of a message
  StepId receive;  // of a message only
  bool is_message = false;
  std::uint32_t round = 0;  // in which it is over (Schedule::rounds); 0: before any message
  // Where all ranks are run: the send, of a message, and the step that ends it; else that step.
  const plan::Step* from = nullptr;
  const plan::Step* to = nullptr;

  /// The step that ends it.
  [[nodiscard]] const StepId& last() const noexcept { return is_message ? receive : step; }
};

}  // namespace hocket::proof
