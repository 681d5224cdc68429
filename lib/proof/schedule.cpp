#include "proof/schedule.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "proof/check.hpp"
#include "proof/lanes.hpp"

namespace hocket::plan {
namespace {

/// Lets events happen as soon as all that they wait for has. An event has the number of its step,
/// or of its send.
class Course {
 public:
  Course(std::span<const Plan> plans, const Lanes& lanes, bool one_at_a_time);

  /// False when the events that are left wait in a circle.
  [[nodiscard]] bool run(Schedule& schedule);
  [[nodiscard]] Status describe_circle() const;

 private:
  struct State {
    bool is_over = false;
    std::uint32_t met = 0;            // places of its waits that are over
    std::uint32_t round = 0;          // in which it is over
    std::uint32_t waiters = no_step;  // the first of those that wait for it now
    std::uint32_t next = no_step;     // of those that wait for the same
  };
  /// All that an event waits for: in its rows, before its step, and before its receive.
  struct Waits {
    std::array<std::uint32_t, 2> rows = {no_step, no_step};
    std::uint32_t rank = 0;
    std::span<const std::uint32_t> step = {};
    std::uint32_t receiver = 0;
    std::span<const std::uint32_t> receive = {};

    [[nodiscard]] std::size_t size() const noexcept {
      return rows.size() + step.size() + receive.size();
    }
  };

  [[nodiscard]] StepId id(std::uint32_t number) const noexcept;
  [[nodiscard]] bool is_message(std::uint32_t event) const noexcept {
    return lanes_.partner[event] != no_step;
  }
  [[nodiscard]] std::uint32_t event_of(std::uint32_t rank, std::uint32_t step) const noexcept;
  [[nodiscard]] Waits waits_of(std::uint32_t event) const;
  /// The event in that place, or none.
  [[nodiscard]] std::uint32_t wait(const Waits& waits, std::size_t place) const noexcept;
  void note_rows();
  void try_event(std::uint32_t event);
  void happen(std::uint32_t event, Schedule& schedule);

  std::span<const Plan> plans_;
  const Lanes& lanes_;
  const bool one_at_a_time_;
  std::vector<std::uint32_t> rank_of_;  // by step
  std::vector<std::uint32_t> row_;      // by step: the send or receive of its rank before it
  std::vector<State> states_;
  std::vector<std::uint32_t> ready_;
};

Course::Course(std::span<const Plan> plans, const Lanes& lanes, bool one_at_a_time)
    : plans_(plans), lanes_(lanes), one_at_a_time_(one_at_a_time), states_(lanes.first.back()) {
  rank_of_.reserve(lanes.first.back());
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    rank_of_.resize(lanes.first[rank + 1], rank);
  }
  if (one_at_a_time) note_rows();
}

void Course::note_rows() {
  row_.assign(states_.size(), no_step);
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    std::array<std::uint32_t, 2> last = {no_step, no_step};
    for (std::uint32_t i = 0; i < plans_[rank].steps.size(); ++i) {
      const Step& step = plans_[rank].steps[i];
      if (!step.sends() && !step.receives()) continue;
      const std::uint32_t number = lanes_.first[rank] + i;
      row_[number] = std::exchange(last[step.sends() ? 0 : 1], number);
    }
  }
}

StepId Course::id(std::uint32_t number) const noexcept {
  const std::uint32_t rank = rank_of_[number];
  return {rank, number - lanes_.first[rank]};
}

std::uint32_t Course::event_of(std::uint32_t rank, std::uint32_t step) const noexcept {
  const std::uint32_t number = lanes_.first[rank] + step;
  return plans_[rank].steps[step].receives() ? lanes_.partner[number] : number;
}

Course::Waits Course::waits_of(std::uint32_t event) const {
  const StepId at = id(event);
  const Plan& plan = plans_[at.rank];
  Waits waits = {.rank = at.rank, .step = plan.before(plan.steps[at.step])};
  if (!is_message(event)) return waits;
  const std::uint32_t receive = lanes_.partner[event];
  const StepId there = id(receive);
  waits.receiver = there.rank;
  waits.receive = plans_[there.rank].before(plans_[there.rank].steps[there.step]);
  if (one_at_a_time_) {
    waits.rows = {row_[event], row_[receive] == no_step ? no_step : lanes_.partner[row_[receive]]};
  } else {
    waits.rows = {lanes_.earlier[event], no_step};
  }
  return waits;
}

std::uint32_t Course::wait(const Waits& waits, std::size_t place) const noexcept {
  // In this order, in which what is over first mostly comes last, an event is tried least often.
  if (place < waits.rows.size()) return waits.rows[place];
  place -= waits.rows.size();
  if (place < waits.step.size()) return event_of(waits.rank, waits.step[place]);
  return event_of(waits.receiver, waits.receive[place - waits.step.size()]);
}

void Course::try_event(std::uint32_t event) {
  State& state = states_[event];
  const Waits waits = waits_of(event);
  for (; state.met < waits.size(); ++state.met) {
    const std::uint32_t other = wait(waits, state.met);
    if (other == no_step || other == event) continue;
    if (!states_[other].is_over) {
      state.next = std::exchange(states_[other].waiters, event);
      return;
    }
    state.round = std::max(state.round, states_[other].round);
  }
  ready_.push_back(event);
}

void Course::happen(std::uint32_t event, Schedule& schedule) {
  State& state = states_[event];
  state.is_over = true;
  Event happened = {.step = id(event), .receive = {}, .is_message = is_message(event), .round = 0};
  if (happened.is_message) {
    happened.receive = id(lanes_.partner[event]);
    ++state.round;
    ++schedule.messages;
    schedule.rounds = std::max<std::uint64_t>(schedule.rounds, state.round);
  }
  happened.round = state.round;
  schedule.events.push_back(happened);
  for (std::uint32_t each = state.waiters; each != no_step;) {
    try_event(std::exchange(each, states_[each].next));
  }
}

bool Course::run(Schedule& schedule) {
  schedule = {};
  std::size_t events = 0;
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    for (std::uint32_t i = 0; i < plans_[rank].steps.size(); ++i) {
      if (plans_[rank].steps[i].receives()) continue;
      ++events;
      try_event(lanes_.first[rank] + i);
    }
  }
  schedule.events.reserve(events);
  while (!ready_.empty()) {
    const std::uint32_t event = ready_.back();
    ready_.pop_back();
    happen(event, schedule);
  }
  return schedule.events.size() == events;
}

/// After run() has failed: each event that is left waits for one that is left.
Status Course::describe_circle() const {
  const auto blocker = [this](std::uint32_t event) {
    return wait(waits_of(event), states_[event].met);
  };
  std::uint32_t event = 0;
  while (states_[event].is_over || plans_[id(event).rank].steps[id(event).step].receives()) ++event;
  std::vector<bool> seen(states_.size());
  for (; !seen[event]; event = blocker(event)) seen[event] = true;
  constexpr int shown_max = 6;
  const auto locate = [this](std::uint32_t each) {
    return plan::locate(plans_[id(each).rank], id(each).step);
  };
  std::string circle = locate(event);
  std::uint32_t each = blocker(event);
  for (int shown = 1; each != event; ++shown, each = blocker(each)) {
    if (shown == shown_max) circle += ", which waits for …";
    if (shown < shown_max) circle += ", which waits for " + locate(each);
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("steps wait in a circle: {}, which waits for the first", circle));
}

}  // namespace

Result<Schedule> make_schedule(std::span<const Plan> plans) {
  const auto lanes = match_lanes(plans);
  if (!lanes.ok()) return lanes.status();
  Schedule schedule;
  if (Course(plans, *lanes, true).run(schedule)) return schedule;
  Course course(plans, *lanes, false);
  if (!course.run(schedule)) return course.describe_circle();
  schedule.rounds = 0;
  return schedule;
}

}  // namespace hocket::plan
