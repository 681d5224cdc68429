// In which order the steps of all ranks can happen.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/plan.hpp"
#include "proof/event.hpp"

namespace hocket::proof {

struct Schedule {
  std::vector<Event> events;  // each behind all that it waits for
  std::uint64_t messages = 0;
  /// Messages one after the other, where a rank does one thing of each kind at a time, in the order
  /// of its plan (OrderedRun). 0 if that can't be, or there are no messages.
  std::uint64_t rounds = 0;
};

/// Plans that passed check_plan, by rank. Fails when a send has no receive of as many blocks or the
/// other way round, or when steps wait for each other in a cycle, which it names. Events have the
/// plans' own steps.
[[nodiscard]] Result<Schedule> make_schedule(std::span<const plan::Plan> plans);

}  // namespace hocket::proof
