#include "plan/schedule.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "plan/check.hpp"
#include "plan/describe.hpp"

namespace hocket::plan {
namespace {

constexpr std::uint32_t none = UINT32_MAX;

/// The steps of all ranks in one row of numbers.
class Steps {
 public:
  explicit Steps(std::span<const Plan> plans) : plans_(plans), first_{0} {
    for (const Plan& plan : plans) {
      first_.push_back(first_.back() + static_cast<std::uint32_t>(plan.steps.size()));
    }
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return first_.back(); }
  [[nodiscard]] std::uint32_t number(StepId id) const noexcept {
    return first_[id.rank] + id.step;
  }
  [[nodiscard]] StepId id(std::uint32_t number) const noexcept {
    const auto behind = std::ranges::upper_bound(first_, number);
    const auto rank = static_cast<std::uint32_t>(behind - first_.begin() - 1);
    return {rank, number - first_[rank]};
  }
  [[nodiscard]] const Step& operator[](StepId id) const noexcept {
    return plans_[id.rank].steps[id.step];
  }
  [[nodiscard]] std::string locate(StepId id) const {
    return plan::locate(plans_[id.rank], id.step);
  }

 private:
  std::span<const Plan> plans_;
  std::vector<std::uint32_t> first_;  // of each rank, and behind the last
};

/// An end of a lane at some step.
struct LaneUse {
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t lane;
  std::uint32_t number;  // of the step

  [[nodiscard]] bool is_on_lane_of(const LaneUse& other) const noexcept {
    return from == other.from && to == other.to && lane == other.lane;
  }
  friend auto operator<=>(const LaneUse&, const LaneUse&) = default;
};

/// What belongs together and what waits for what; an event has the number of its step, or send.
class Graph {
 public:
  explicit Graph(std::span<const Plan> plans)
      : plans_(plans), steps_(plans), partner_(steps_.count(), none) {}

  Status match();
  /// With a row for each rank's sends and one for its receives, or without.
  void connect(bool in_rows);
  /// False when steps wait in a circle.
  bool order(Schedule& schedule);
  [[nodiscard]] Status describe_circle() const;

 private:
  struct Edge {
    std::uint32_t from;
    std::uint32_t to;
  };

  std::vector<LaneUse> lane_uses(bool sends) const;
  [[nodiscard]] Status unmatched(const LaneUse& alone, bool sends) const;
  [[nodiscard]] std::uint32_t event_of(std::uint32_t number) const noexcept {
    return is_receive_[number] ? partner_[number] : number;
  }
  void add_edge(std::uint32_t before, std::uint32_t after);
  void add_rows();

  std::span<const Plan> plans_;
  Steps steps_;
  std::vector<std::uint32_t> partner_;
  std::vector<bool> is_receive_;
  std::vector<Edge> lanes_;  // messages of one lane, in their order
  std::vector<Edge> edges_;
  std::vector<std::uint32_t> waits_for_;  // how many events still
};

std::vector<LaneUse> Graph::lane_uses(bool sends) const {
  std::vector<LaneUse> uses;
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    for (std::uint32_t i = 0; i < plans_[rank].steps.size(); ++i) {
      const Step& step = plans_[rank].steps[i];
      if (sends ? !step.sends() : !step.receives()) continue;
      uses.push_back({sends ? rank : step.peer, sends ? step.peer : rank, step.lane,
                      steps_.number({rank, i})});
    }
  }
  std::ranges::sort(uses);
  return uses;
}

Status Graph::unmatched(const LaneUse& alone, bool sends) const {
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: rank {} has no {} for it", steps_.locate(steps_.id(alone.number)),
                            sends ? alone.to : alone.from, sends ? "receive" : "send"));
}

Status Graph::match() {
  const std::vector<LaneUse> sends = lane_uses(true);
  const std::vector<LaneUse> receives = lane_uses(false);
  is_receive_.resize(steps_.count());
  for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
    const bool both = i < sends.size() && i < receives.size();
    if (!both || !sends[i].is_on_lane_of(receives[i])) {
      const bool lacks_receive = both ? sends[i] < receives[i] : i < sends.size();
      return lacks_receive ? unmatched(sends[i], true) : unmatched(receives[i], false);
    }
    const StepId send = steps_.id(sends[i].number);
    const StepId receive = steps_.id(receives[i].number);
    if (steps_[send].count != steps_[receive].count) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("{}: gets the message of {}", steps_.locate(receive),
                                steps_.locate(send)));
    }
    partner_[sends[i].number] = receives[i].number;
    partner_[receives[i].number] = sends[i].number;
    is_receive_[receives[i].number] = true;
    if (i > 0 && sends[i].is_on_lane_of(sends[i - 1])) {
      lanes_.push_back({sends[i - 1].number, sends[i].number});
    }
  }
  return {};
}

void Graph::add_edge(std::uint32_t before, std::uint32_t after) {
  const Edge edge = {event_of(before), event_of(after)};
  if (edge.from == edge.to) return;
  edges_.push_back(edge);
  ++waits_for_[edge.to];
}

void Graph::connect(bool in_rows) {
  edges_.clear();
  waits_for_.assign(steps_.count(), 0);
  for (const Edge& edge : lanes_) add_edge(edge.from, edge.to);
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const Plan& plan = plans_[rank];
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
      const std::uint32_t number = steps_.number({rank, i});
      for (const std::uint32_t before : plan.before(plan.steps[i])) {
        add_edge(steps_.number({rank, before}), number);
      }
    }
  }
  if (in_rows) add_rows();
  std::ranges::sort(edges_, {}, &Edge::from);
}

void Graph::add_rows() {
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    std::uint32_t last_send = none;
    std::uint32_t last_receive = none;
    for (std::uint32_t i = 0; i < plans_[rank].steps.size(); ++i) {
      const Step& step = plans_[rank].steps[i];
      if (!step.sends() && !step.receives()) continue;
      const std::uint32_t number = steps_.number({rank, i});
      std::uint32_t& last = step.sends() ? last_send : last_receive;
      if (last != none) add_edge(last, number);
      last = number;
    }
  }
}

bool Graph::order(Schedule& schedule) {
  schedule = {};
  std::vector<std::uint32_t> first_edge(steps_.count() + 1, 0);
  for (const Edge& edge : edges_) ++first_edge[edge.from + 1];
  for (std::size_t i = 1; i < first_edge.size(); ++i) first_edge[i] += first_edge[i - 1];

  std::vector<std::uint32_t> ready;
  std::vector<std::uint32_t> round(steps_.count(), 0);  // in which it is over
  std::uint32_t events = 0;
  for (std::uint32_t i = 0; i < steps_.count(); ++i) {
    if (is_receive_[i]) continue;
    ++events;
    if (waits_for_[i] == 0) ready.push_back(i);
  }
  while (!ready.empty()) {
    const std::uint32_t event = ready.back();
    ready.pop_back();
    const bool is_message = partner_[event] != none;
    round[event] += is_message ? 1 : 0;
    schedule.messages += is_message ? 1 : 0;
    schedule.rounds = std::max<std::uint64_t>(schedule.rounds, round[event]);
    schedule.events.push_back(
        {steps_.id(event), is_message ? steps_.id(partner_[event]) : StepId{}, is_message});
    for (std::uint32_t i = first_edge[event]; i < first_edge[event + 1]; ++i) {
      const std::uint32_t next = edges_[i].to;
      round[next] = std::max(round[next], round[event]);
      if (--waits_for_[next] == 0) ready.push_back(next);
    }
  }
  return schedule.events.size() == events;
}

/// After order() has failed: each event that is left waits for one that is left.
Status Graph::describe_circle() const {
  std::vector<std::uint32_t> waits_for(steps_.count(), none);
  std::uint32_t event = none;
  for (const Edge& edge : edges_) {
    if (waits_for_[edge.from] == 0 || waits_for_[edge.to] == 0) continue;
    waits_for[edge.to] = edge.from;
    event = edge.to;
  }
  std::vector<bool> seen(steps_.count());
  while (!seen[event]) {
    seen[event] = true;
    event = waits_for[event];
  }
  constexpr int shown_max = 6;
  std::string circle = steps_.locate(steps_.id(event));
  std::uint32_t each = waits_for[event];
  for (int shown = 1; each != event; ++shown, each = waits_for[each]) {
    if (shown == shown_max) circle += ", which waits for …";
    if (shown < shown_max) circle += ", which waits for " + steps_.locate(steps_.id(each));
  }
  return Status(StatusCode::invalid_argument,
                fmt::format("steps wait in a circle: {}, which waits for the first", circle));
}

}  // namespace

Result<Schedule> make_schedule(std::span<const Plan> plans) {
  Graph graph(plans);
  if (Status status = graph.match(); !status.ok()) return status;
  Schedule schedule;
  graph.connect(true);
  if (graph.order(schedule)) return schedule;
  graph.connect(false);
  if (!graph.order(schedule)) return graph.describe_circle();
  schedule.rounds = 0;
  return schedule;
}

}  // namespace hocket::plan
