#include "sim/simulate.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "proof/lanes.hpp"
#include "sim/agenda.hpp"
#include "sim/links.hpp"
#include "sim/volume.hpp"

namespace hocket::sim {
namespace {

using plan::no_step;
using plan::Plan;
using plan::Step;
using plan::StepKind;

/// Steps have the numbers that they have in plan::Lanes, and a message that of its send.
class Course {
 public:
  Course(std::span<const Plan> plans, const plan::Lanes& lanes, const Network& network,
         const SimulateOptions& options);

  /// False when the steps that are left wait in a circle.
  [[nodiscard]] bool run();
  [[nodiscard]] Timing timing() const;

 private:
  /// A step as half a cache line: the time goes into waiting for memory.
  struct Node {
    Time time = 0;             // of the latest end that it waited for; and then of its own
    std::uint64_t amount = 0;  // of a send, bytes; of others, how long the core works
    std::uint32_t rank = 0;
    std::uint32_t partner = no_step;  // as in plan::Lanes
    std::uint32_t later = no_step;    // of a send, the next one on its lane
    // For so many steps, and the start; a send for its turn on its lane; and a message that is
    // eager at its receive, another at its send, for the other end.
    static constexpr std::uint32_t waits_max = UINT32_MAX >> 2U;
    std::uint32_t waits : 30 = 0;
    std::uint32_t is_eager : 1 = 0;
    std::uint32_t is_receive : 1 = 0;
  };
  /// What a step, or a message, does next: on its links (links.hpp) the second and the third.
  enum class Stage : std::uint32_t { beginning, departing, passing, arriving };
  struct Event {
    std::uint32_t number;
    Stage stage;
  };

  void note_steps(const Plan& plan, const Volume& volume, const Network& network);
  void note_messages(std::span<const Plan> plans, const Network& network);
  void note_waiters(std::span<const Plan> plans);
  /// The memory that an event of the step will need, while that before it is done.
  void fetch(std::uint32_t number, bool is_near) const noexcept;
  void happen(const Event& event);
  void begin(std::uint32_t number);
  void depart(std::uint32_t number);
  void pass(std::uint32_t number);
  void end(std::uint32_t number, Time time);
  void meet(std::uint32_t number, Time time);
  [[nodiscard]] Time work(std::uint32_t number, Time time);
  [[nodiscard]] Links::Way way_of(const Node& send) const noexcept {
    return links_.way(send.rank, nodes_[send.partner].rank);
  }

  Links links_;
  Agenda<Event> agenda_;
  std::vector<std::uint32_t> first_;         // step of each rank, and behind the last
  std::vector<Node> nodes_;                  // by step
  std::vector<std::uint32_t> first_waiter_;  // by step, and behind the last: its place in …
  std::vector<std::uint32_t> waiters_;       // the steps that wait for one
  std::vector<Time> cores_;                  // by rank: when its core is free
  std::vector<Time> begins_;                 // by step, if kept
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t ended_ = 0;  // steps
};

Course::Course(std::span<const Plan> plans, const plan::Lanes& lanes, const Network& network,
               const SimulateOptions& options)
    : links_(network, static_cast<std::uint32_t>(plans.size())),
      first_(lanes.first),
      cores_(plans.size()) {
  const Volume volume(plans.front().problem, plans.front().shape, options.elements, options.sizes,
                      options.element_bytes);
  nodes_.reserve(first_.back());
  for (const Plan& plan : plans) note_steps(plan, volume, network);
  for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
    nodes_[number].partner = lanes.partner[number];
    const std::uint32_t earlier = lanes.earlier[number];
    if (earlier == no_step) continue;
    nodes_[earlier].later = number;
    ++nodes_[number].waits;
  }
  note_messages(plans, network);
  note_waiters(plans);
  if (options.keep_steps) begins_.resize(nodes_.size());
}

void Course::note_steps(const Plan& plan, const Volume& volume, const Network& network) {
  const Pace copying(network.copy_speed);
  const Pace reducing(network.reduce_speed);
  for (const Step& step : plan.steps) {
    Node& node = nodes_.emplace_back();
    node.rank = plan.rank;
    node.waits = (step.after_count + 1U) & Node::waits_max;
    node.is_receive = step.receives() ? 1 : 0;
    if (step.receives()) continue;
    node.amount = volume.bytes(plan.rank, step.source());
    if (step.kind == StepKind::copy) node.amount = copying.of(node.amount);
    if (step.kind == StepKind::reduce) node.amount = reducing.of(node.amount);
  }
}

/// What comes is as large as what was sent.
void Course::note_messages(std::span<const Plan> plans, const Network& network) {
  const Pace reducing(network.reduce_speed);
  for (const Plan& plan : plans) {
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (!plan.steps[i].receives()) continue;
      Node& receive = nodes_[first_[plan.rank] + i];
      Node& send = nodes_[receive.partner];
      const bool reduces = plan.steps[i].kind == StepKind::recv_reduce;
      receive.amount = way_of(send).overhead + (reduces ? reducing.of(send.amount) : 0);
      const bool is_eager = static_cast<double>(send.amount) <= network.eager_bytes;
      send.is_eager = receive.is_eager = is_eager ? 1 : 0;
      ++(is_eager ? receive : send).waits;
      ++messages_;
      bytes_ += send.amount;
    }
  }
}

void Course::note_waiters(std::span<const Plan> plans) {
  first_waiter_.assign(nodes_.size() + 1, 0);
  for (const Plan& plan : plans) {
    for (const std::uint32_t each : plan.after) ++first_waiter_[first_[plan.rank] + each + 1];
  }
  for (std::size_t i = 1; i <= nodes_.size(); ++i) first_waiter_[i] += first_waiter_[i - 1];
  waiters_.resize(first_waiter_.back());
  std::vector<std::uint32_t> next;
  for (const Plan& plan : plans) {
    const std::uint32_t first = first_[plan.rank];
    next.assign(first_waiter_.begin() + first, first_waiter_.begin() + first_[plan.rank + 1]);
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
      for (const std::uint32_t each : plan.before(plan.steps[i]))
        waiters_[next[each]++] = first + i;
    }
  }
}

bool Course::run() {
  // Receives first: sends are to leave in the order of the plan.
  for (const std::uint32_t is_receive : {1U, 0U}) {
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      if (nodes_[number].is_receive == is_receive) meet(number, 0);
    }
  }
  const auto fetch_for = [this](const Event& event, bool is_near) {
    fetch(event.number, is_near);
  };
  while (!agenda_.empty()) happen(agenda_.take_next(fetch_for));
  return ended_ == nodes_.size();
}

void Course::happen(const Event& event) {
  switch (event.stage) {
    case Stage::beginning:
      return begin(event.number);
    case Stage::departing:
      return depart(event.number);
    case Stage::passing:
      return pass(event.number);
    case Stage::arriving:
      return end(event.number, work(event.number, nodes_[event.number].amount));
  }
}

/// One of those that a step waits for is over, or is to be at that time.
void Course::meet(std::uint32_t number, Time time) {
  Node& node = nodes_[number];
  node.time = std::max(node.time, time);
  if (--node.waits > 0) return;
  if (node.is_receive == 0) return agenda_.add(node.time, {number, Stage::beginning});
  if (node.is_eager == 1) return agenda_.add(node.time, {number, Stage::arriving});
  meet(node.partner, node.time);
}

void Course::fetch(std::uint32_t number, bool is_near) const noexcept {
  const Node& node = nodes_[number];
  if (!is_near) {
    __builtin_prefetch(&node);
    __builtin_prefetch(&first_waiter_[number]);
    return;
  }
  __builtin_prefetch(&cores_[node.rank]);
  if (node.partner != no_step) __builtin_prefetch(&nodes_[node.partner]);
  __builtin_prefetch(waiters_.data() + first_waiter_[number]);
}

void Course::begin(std::uint32_t number) {
  const Node& node = nodes_[number];
  if (node.partner == no_step) return end(number, work(number, node.amount));
  agenda_.add(work(number, way_of(node).overhead), {number, Stage::departing});
  if (node.later != no_step) meet(node.later, agenda_.now());
}

void Course::depart(std::uint32_t number) {
  Node& node = nodes_[number];
  const Links::Departure departure = links_.depart(way_of(node), node.amount, agenda_.now());
  node.time = departure.end;
  if (departure.begin > agenda_.now())
    return agenda_.add(departure.begin, {number, Stage::passing});
  pass(number);
}

void Course::pass(std::uint32_t number) {
  const Node& node = nodes_[number];
  const Links::Way way = way_of(node);
  const Time last_byte = std::max(node.time, links_.pass(way, node.amount, agenda_.now()));
  if (node.is_eager == 1) {
    meet(node.partner, last_byte + way.latency);
  } else {
    agenda_.add(last_byte + way.latency, {node.partner, Stage::arriving});
  }
  end(number, last_byte);
}

void Course::end(std::uint32_t number, Time time) {
  nodes_[number].time = time;
  ++ended_;
  for (std::uint32_t i = first_waiter_[number]; i < first_waiter_[number + 1]; ++i) {
    meet(waiters_[i], time);
  }
}

/// Keeps the core of its rank busy, from now on or from when that is free; until when.
Time Course::work(std::uint32_t number, Time time) {
  Time& core = cores_[nodes_[number].rank];
  const Time begin = std::max(core, agenda_.now());
  if (!begins_.empty()) begins_[number] = begin;
  return core = begin + time;
}

Timing Course::timing() const {
  Timing timing;
  timing.messages = messages_;
  timing.bytes = bytes_;
  for (std::size_t rank = 0; rank + 1 < first_.size(); ++rank) {
    Time last = 0;
    for (std::uint32_t i = first_[rank]; i < first_[rank + 1]; ++i) {
      last = std::max(last, nodes_[i].time);
    }
    timing.rank_ends.push_back(to_seconds(last));
    timing.seconds = std::max(timing.seconds, timing.rank_ends.back());
    if (begins_.empty()) continue;
    std::vector<StepTime>& steps = timing.steps.emplace_back();
    for (std::uint32_t i = first_[rank]; i < first_[rank + 1]; ++i) {
      steps.push_back({to_seconds(begins_[i]), to_seconds(nodes_[i].time)});
    }
  }
  const Link busiest = links_.busiest();
  if (links_.busy(busiest) == 0) return timing;
  timing.busiest_link = links_.name(busiest);
  timing.busiest_share = to_seconds(links_.busy(busiest)) / timing.seconds;
  return timing;
}

}  // namespace

Result<Timing> simulate(std::span<const Plan> plans, const Network& network,
                        const SimulateOptions& options) {
  if (Status status = check_network(network); !status.ok()) return status;
  if (plans.empty()) return Status(StatusCode::invalid_argument, "simulate: no plans");
  auto lanes = plan::match_lanes(plans);
  if (!lanes.ok()) return lanes.status();
  Course course(plans, *lanes, network, options);
  if (course.run()) return course.timing();
  return Status(StatusCode::invalid_argument,
                fmt::format("simulate: the steps of {} wait for each other in a circle",
                            plans.front().algorithm))
      .with_hint("verify the plans: that names the steps");
}

}  // namespace hocket::sim
