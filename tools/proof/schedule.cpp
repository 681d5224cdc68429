#include "proof/schedule.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "proof/check.hpp"
#include "proof/describe.hpp"
#include "proof/lanes.hpp"
#include "proof/ordered_run.hpp"

namespace hocket::proof {
namespace {

using plan::Matches;
using plan::no_step;
using plan::Plan;

/// Lets events happen as soon as all that they wait for has. An event has the number of its step,
/// or of its send.
class Course {
 public:
  Course(std::span<const Plan> plans, const Matches& matches);

  /// False when the events that are left wait for each other in a cycle.
  [[nodiscard]] bool run(Schedule& schedule);
  [[nodiscard]] Status describe_cycle() const;

 private:
  struct State {
    bool is_over = false;
    std::uint32_t met = 0;            // places of its waits that are over
    std::uint32_t waiters = no_step;  // the first of those that wait for it now
    std::uint32_t next = no_step;     // of those that wait for the same
  };
  /// All that an event waits for: the one before it on its lane, and what its step and its receive
  /// wait for.
  struct Waits {
    std::uint32_t on_lane = no_step;
    std::uint32_t rank = 0;
    std::span<const std::uint32_t> step = {};
    std::uint32_t receiver = 0;
    std::span<const std::uint32_t> receive = {};

    [[nodiscard]] std::size_t size() const noexcept { return 1 + step.size() + receive.size(); }
  };

  [[nodiscard]] StepId id(std::uint32_t number) const noexcept;
  [[nodiscard]] bool is_message(std::uint32_t event) const noexcept {
    return matches_.partner[event] != no_step;
  }
  [[nodiscard]] std::uint32_t event_of(std::uint32_t rank, std::uint32_t step) const noexcept;
  [[nodiscard]] Waits waits_of(std::uint32_t event) const;
  /// The event in that place, or none.
  [[nodiscard]] std::uint32_t wait(const Waits& waits, std::size_t place) const noexcept;
  void try_event(std::uint32_t event);
  void happen(std::uint32_t event, Schedule& schedule);

  std::span<const Plan> plans_;
  const Matches& matches_;
  std::vector<std::uint32_t> rank_of_;  // by step
  std::vector<State> states_;
  std::vector<std::uint32_t> ready_;
};

Course::Course(std::span<const Plan> plans, const Matches& matches)
    : plans_(plans), matches_(matches), states_(matches.first.back()) {
  rank_of_.reserve(matches.first.back());
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) {
    rank_of_.resize(matches.first[rank + 1], rank);
  }
}

StepId Course::id(std::uint32_t number) const noexcept {
  const std::uint32_t rank = rank_of_[number];
  return {rank, number - matches_.first[rank]};
}

std::uint32_t Course::event_of(std::uint32_t rank, std::uint32_t step) const noexcept {
  const std::uint32_t number = matches_.first[rank] + step;
  return plans_[rank].steps[step].receives() ? matches_.partner[number] : number;
}

Course::Waits Course::waits_of(std::uint32_t event) const {
  const StepId at = id(event);
  const Plan& plan = plans_[at.rank];
  Waits waits = {.rank = at.rank, .step = plan.awaited(plan.steps[at.step])};
  if (!is_message(event)) return waits;
  const StepId there = id(matches_.partner[event]);
  waits.on_lane = matches_.earlier[event];
  waits.receiver = there.rank;
  waits.receive = plans_[there.rank].awaited(plans_[there.rank].steps[there.step]);
  return waits;
}

std::uint32_t Course::wait(const Waits& waits, std::size_t place) const noexcept {
  // In this order, in which what is over first mostly comes last, an event is tried least often.
  if (place-- == 0) return waits.on_lane;
  if (place < waits.step.size()) return event_of(waits.rank, waits.step[place]);
  return event_of(waits.receiver, waits.receive[place - waits.step.size()]);
}

void Course::try_event(std::uint32_t event) {
  State& state = states_[event];
  const Waits waits = waits_of(event);
  for (; state.met < waits.size(); ++state.met) {
    const std::uint32_t other = wait(waits, state.met);
    if (other == no_step || other == event || states_[other].is_over) continue;
    state.next = std::exchange(states_[other].waiters, event);
    return;
  }
  ready_.push_back(event);
}

void Course::happen(std::uint32_t event, Schedule& schedule) {
  State& state = states_[event];
  state.is_over = true;
  Event happened = {.step = id(event), .receive = {}, .is_message = is_message(event), .round = 0};
  if (happened.is_message) {
    happened.receive = id(matches_.partner[event]);
    ++schedule.messages;
  }
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
      try_event(matches_.first[rank] + i);
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
Status Course::describe_cycle() const {
  const auto blocker = [this](std::uint32_t event) {
    return wait(waits_of(event), states_[event].met);
  };
  std::uint32_t event = 0;
  while (states_[event].is_over || plans_[id(event).rank].steps[id(event).step].receives()) ++event;
  std::vector<bool> seen(states_.size());
  for (; !seen[event]; event = blocker(event)) seen[event] = true;
  constexpr int shown_max = 6;
  const auto place = [this](std::uint32_t each) {
    return locate(plans_[id(each).rank], id(each).step);
  };
  std::string cycle = place(event);
  std::uint32_t each = blocker(event);
  for (int shown = 1; each != event; ++shown, each = blocker(each)) {
    if (shown == shown_max) cycle += ", which waits for …";
    if (shown < shown_max) cycle += ", which waits for " + place(each);
  }
  return Status(
      StatusCode::invalid_argument,
      fmt::format("steps wait for each other in a cycle: {}, which waits for the first", cycle));
}

}  // namespace

Result<Schedule> make_schedule(std::span<const Plan> plans) {
  Schedule schedule;
  OrderedRun run;
  run.start(plans);
  for (auto events = run.next(); !events.empty(); events = run.next()) {
    schedule.events.insert(schedule.events.end(), events.begin(), events.end());
  }
  schedule.messages = run.messages();
  schedule.rounds = run.rounds();
  if (!run.is_over()) {
    const auto matches = plan::match_lanes(plans);
    if (!matches.ok()) return matches.status();
    Course course(plans, *matches);
    if (!course.run(schedule)) return course.describe_cycle();
  }
  for (Event& event : schedule.events) {
    event.from = &plans[event.step.rank].steps[event.step.step];
    event.to = &plans[event.last().rank].steps[event.last().step];
  }
  return schedule;
}

}  // namespace hocket::proof
