// In which order the steps of all ranks can happen: which receive belongs to which send, and what
// comes before what.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"

#include "plan/plan.hpp"

namespace hocket::plan {

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
};

struct Schedule {
  std::vector<Event> events;  // each behind all that it waits for
  std::uint64_t messages = 0;
  /// Messages one after the other, where a rank sends one at a time and receives one at a time, in
  /// the order of its plan. 0 if that order is none, or there are no messages.
  std::uint64_t rounds = 0;
};

/// Plans that passed check_plan, by rank. Fails when a send has no receive of as many blocks or the
/// other way round, or when steps wait in a circle, which it names.
[[nodiscard]] Result<Schedule> make_schedule(std::span<const Plan> plans);

}  // namespace hocket::plan
