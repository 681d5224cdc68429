#include "simulator/simulate.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "proof/lanes.hpp"
#include "simulator/agenda.hpp"
#include "simulator/links.hpp"
#include "simulator/processors.hpp"
#include "simulator/volume.hpp"

namespace hocket::sim {
namespace {

using plan::no_step;
using plan::Plan;
using plan::Step;
using plan::StepKind;

/// Numbers for the steps of all ranks, and for a message that of its send. First the first step of
/// every rank, then the second of those that have one, and so on: what happens at one time in
/// different ranks lies side by side, which makes all the difference to a hundred thousand of them.
class Numbers {
 public:
  explicit Numbers(std::span<const Plan> plans);

  [[nodiscard]] std::uint32_t count() const noexcept { return rows_.back(); }
  [[nodiscard]] std::uint32_t of(std::uint32_t rank, std::uint32_t step) const noexcept {
    return rows_[step] + place_[rank];
  }

 private:
  std::vector<std::uint32_t> place_;  // of each rank, in the order of the lengths of their plans
  std::vector<std::uint32_t> rows_;   // where each step begins, and behind the last
};

Numbers::Numbers(std::span<const Plan> plans) : place_(plans.size()), rows_{0} {
  std::vector<std::uint32_t> ranks(plans.size());
  std::iota(ranks.begin(), ranks.end(), 0U);
  std::ranges::stable_sort(ranks, std::greater(),
                           [&](std::uint32_t rank) { return plans[rank].steps.size(); });
  for (std::uint32_t i = 0; i < ranks.size(); ++i) place_[ranks[i]] = i;
  for (std::size_t step = 0, left = ranks.size(); left > 0; ++step) {
    while (left > 0 && plans[ranks[left - 1]].steps.size() <= step) --left;
    if (left > 0) rows_.push_back(rows_.back() + static_cast<std::uint32_t>(left));
  }
}

/// Calls visit(plan, step) for all steps, in the order of both the plans and, nearly, the numbers.
template <class Visit>
void visit_steps(std::span<const Plan> plans, const Visit& visit) {
  constexpr std::size_t together = 64;
  for (std::size_t begin = 0; begin < plans.size(); begin += together) {
    const auto some = plans.subspan(begin, std::min(together, plans.size() - begin));
    std::size_t longest = 0;
    for (const Plan& plan : some) longest = std::max(longest, plan.steps.size());
    for (std::uint32_t i = 0; i < longest; ++i) {
      for (const Plan& plan : some) {
        if (i < plan.steps.size()) visit(plan, i);
      }
    }
  }
}

class Course {
 public:
  /// The plans of all ranks, or that of rank 0, which the others are alike.
  Course(std::span<const Plan> plans, const plan::Matches& lanes, const choose::Network& network,
         const SimulateOptions& options);

  /// False when the steps that are left wait in a circle.
  [[nodiscard]] bool run();
  [[nodiscard]] Timing timing(std::span<const Plan> plans) const;

 private:
  /// A step, as half a cache line: most of the time goes into waiting for memory.
  struct Node {
    Time time = 0;             // of the latest end that it waited for; and then of its own
    std::uint64_t amount = 0;  // of a send, bytes; of others, how long the core works
    std::uint32_t rank = 0;
    std::uint32_t partner = no_step;  // of a send its receive, of a receive its send
    std::uint32_t later = no_step;    // of a send, the next one on its lane
    // For so many steps, and the start; a send for its turn on its lane; and a message that is
    // eager at its receive, another at its send, for the other end.
    static constexpr std::uint32_t waits_max = UINT32_MAX >> 2U;
    std::uint32_t waits : 30 = 0;
    std::uint32_t is_eager : 1 = 0;
    std::uint32_t is_receive : 1 = 0;
  };
  /// What a step, or a message, does next: on its links (links.hpp) the second and the third. And
  /// what a rank does that shares its processor, when it is done with a step.
  enum class Stage : std::uint32_t { beginning, departing, passing, arriving, ending, resting };
  struct Event {
    std::uint32_t number;
    Stage stage;
  };

  void note_step(const Plan& plan, std::uint32_t step, const plan::Matches& lanes,
                 const Volume& volume, const choose::Network& network);
  void note_message(const Step& receive, std::uint32_t number, const choose::Network& network);
  void note_waiters(std::span<const Plan> plans);
  void happen(const Event& event);
  void begin(std::uint32_t number);
  void depart(std::uint32_t number);
  void pass(std::uint32_t number);
  void end(std::uint32_t number, Time time);
  void meet(std::uint32_t number, Time time);
  void work(std::uint32_t number, Time time);
  [[nodiscard]] Processors::Task task_of(std::uint32_t number, Time time) const noexcept;
  void begin_turns();
  void worked(std::uint32_t number, Time begin, Time end);
  void rest_behind(std::uint32_t number);
  [[nodiscard]] Links::Way way_of(const Node& send) const noexcept {
    if (ranks_alike_ > 1) return links_.way_among_alike();
    return links_.way(send.rank, nodes_[send.partner].rank);
  }

  const std::uint32_t ranks_alike_;  // for so many each plan stands
  Links links_;
  Agenda<Event> agenda_;
  Numbers numbers_;
  std::vector<Node> nodes_;                  // by step
  std::vector<std::uint32_t> first_waiter_;  // by step, and behind the last: its place in …
  std::vector<std::uint32_t> waiters_;       // the steps that wait for one
  std::vector<Time> cores_;                  // by rank: when it is free
  Processors processors_;
  bool keeps_steps_;
  std::vector<Time> begins_;  // by step, if kept
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t ended_ = 0;  // steps
};

Course::Course(std::span<const Plan> plans, const plan::Matches& lanes,
               const choose::Network& network, const SimulateOptions& options)
    : ranks_alike_(plans.front().problem.size / static_cast<std::uint32_t>(plans.size())),
      links_(network, static_cast<std::uint32_t>(plans.size())),
      numbers_(plans),
      nodes_(numbers_.count()),
      cores_(plans.size()),
      processors_(network.processors, static_cast<std::uint32_t>(plans.size()),
                  to_time(network.handover)),
      keeps_steps_(options.keep_steps) {
  const Volume volume(plans.front().problem, plans.front().shape, options.elements, options.sizes,
                      options.element_bytes);
  visit_steps(plans, [&](const Plan& plan, std::uint32_t step) {
    note_step(plan, step, lanes, volume, network);
  });
  visit_steps(plans, [&](const Plan& plan, std::uint32_t step) {
    if (!plan.steps[step].receives()) return;
    note_message(plan.steps[step], numbers_.of(plan.rank, step), network);
  });
  note_waiters(plans);
  if (keeps_steps_) begins_.resize(nodes_.size());
}

void Course::note_step(const Plan& plan, std::uint32_t step, const plan::Matches& lanes,
                       const Volume& volume, const choose::Network& network) {
  const std::uint32_t number = numbers_.of(plan.rank, step);
  Node& node = nodes_[number];
  const Step& what = plan.steps[step];
  node.rank = plan.rank;
  node.waits = (node.waits + what.after_count + 1U) & Node::waits_max;
  node.is_receive = what.receives() ? 1 : 0;
  const std::uint32_t lanes_number = lanes.first[plan.rank] + step;
  if (const std::uint32_t partner = lanes.partner[lanes_number]; partner != no_step) {
    const std::uint32_t peer = ranks_alike_ > 1 ? 0 : what.peer;
    node.partner = numbers_.of(peer, partner - lanes.first[peer]);
  }
  if (const std::uint32_t earlier = lanes.earlier[lanes_number]; earlier != no_step) {
    nodes_[numbers_.of(plan.rank, earlier - lanes.first[plan.rank])].later = number;
    ++node.waits;
  }
  if (what.receives()) return;
  node.amount = volume.bytes(plan.rank, what.source());
  if (what.kind == StepKind::copy) node.amount = Pace(network.copy_speed).of(node.amount);
  if (what.kind == StepKind::reduce) node.amount = Pace(network.reduce_speed).of(node.amount);
}

/// What comes is as large as what was sent.
void Course::note_message(const Step& receive, std::uint32_t number,
                          const choose::Network& network) {
  Node& node = nodes_[number];
  Node& send = nodes_[node.partner];
  node.amount = way_of(send).overhead;
  if (static_cast<double>(send.amount) > choose::packet_bytes)
    node.amount += to_time(network.acknowledge);
  if (receive.kind == StepKind::recv_reduce) {
    node.amount += Pace(network.reduce_speed).of(send.amount);
  }
  const bool is_eager = static_cast<double>(send.amount) <= network.eager_bytes;
  send.is_eager = node.is_eager = is_eager ? 1 : 0;
  ++(is_eager ? node : send).waits;
  ++messages_;
  bytes_ += send.amount;
}

void Course::note_waiters(std::span<const Plan> plans) {
  // While they are filled in, the place behind a step's waiters moves from their beginning to
  // their end.
  first_waiter_.assign(nodes_.size() + 2, 0);
  visit_steps(plans, [&](const Plan& plan, std::uint32_t step) {
    for (const std::uint32_t each : plan.awaited(plan.steps[step])) {
      ++first_waiter_[numbers_.of(plan.rank, each) + 2];
    }
  });
  std::partial_sum(first_waiter_.begin(), first_waiter_.end(), first_waiter_.begin());
  waiters_.resize(first_waiter_.back());
  visit_steps(plans, [&](const Plan& plan, std::uint32_t step) {
    for (const std::uint32_t each : plan.awaited(plan.steps[step])) {
      waiters_[first_waiter_[numbers_.of(plan.rank, each) + 1]++] = numbers_.of(plan.rank, step);
    }
  });
}

bool Course::run() {
  // Receives first: sends are to leave in the order of the plan.
  for (const std::uint32_t is_receive : {1U, 0U}) {
    for (std::uint32_t number = 0; number < nodes_.size(); ++number) {
      if (nodes_[number].is_receive == is_receive) meet(number, 0);
    }
  }
  while (!agenda_.empty()) happen(agenda_.take_next());
  return ended_ == nodes_.size();
}

void Course::happen(const Event& event) {
  switch (event.stage) {
    case Stage::beginning:
      return begin(event.number);
    case Stage::departing:
      depart(event.number);
      return rest_behind(event.number);
    case Stage::passing:
      return pass(event.number);
    case Stage::arriving:
      return work(event.number, nodes_[event.number].amount);
    case Stage::ending:
      end(event.number, agenda_.now());
      return rest_behind(event.number);
    case Stage::resting:
      processors_.done(event.number);
      return begin_turns();
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

void Course::begin(std::uint32_t number) {
  const Node& node = nodes_[number];
  if (node.partner == no_step) return work(number, node.amount);
  work(number, way_of(node).overhead);
  if (node.later != no_step) meet(node.later, agenda_.now());
}

void Course::depart(std::uint32_t number) {
  Node& node = nodes_[number];
  const Links::Departure departure = links_.depart(way_of(node), node.amount, agenda_.now());
  node.time = departure.end;
  if (departure.begin == agenda_.now()) return pass(number);
  agenda_.add(departure.begin, {number, Stage::passing});
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

/// Keeps a step's rank busy, from now on or from when it can.
void Course::work(std::uint32_t number, Time time) {
  const std::uint32_t rank = nodes_[number].rank;
  if (processors_.are_shared()) {
    processors_.add(rank, task_of(number, time));
    return begin_turns();
  }
  const Time begin = std::max(cores_[rank], agenda_.now());
  cores_[rank] = begin + time;
  worked(number, begin, cores_[rank]);
}

Processors::Task Course::task_of(std::uint32_t number, Time time) const noexcept {
  const Node& node = nodes_[number];
  const Time now = agenda_.now();
  if (node.partner == no_step) return {number, Processors::no_lane, now, 0, time};
  const Node& send = node.is_receive == 1 ? nodes_[node.partner] : node;
  const Time call = way_of(send).overhead;
  const std::uint32_t lane = 2 * nodes_[node.partner].rank + node.is_receive;
  return {number, lane, now, call, time - call};
}

void Course::begin_turns() {
  while (const auto turn = processors_.take(agenda_.now())) {
    worked(turn->step, turn->begin, turn->end);
  }
}

void Course::worked(std::uint32_t number, Time begin, Time end) {
  if (keeps_steps_) begins_[number] = begin;
  const Node& node = nodes_[number];
  const bool is_send = node.partner != no_step && node.is_receive == 0;
  if (is_send) return agenda_.add(end, {number, Stage::departing});
  if (processors_.are_shared()) return agenda_.add(end, {number, Stage::ending});
  this->end(number, end);
}

/// When all that a step has led to at this time is known.
void Course::rest_behind(std::uint32_t number) {
  if (processors_.are_shared()) agenda_.add(agenda_.now(), {nodes_[number].rank, Stage::resting});
}

Timing Course::timing(std::span<const Plan> plans) const {
  Timing timing;
  timing.messages = messages_ * ranks_alike_;
  timing.bytes = bytes_ * ranks_alike_;
  timing.rank_ends.resize(plans.size());
  for (const Node& node : nodes_) {
    double& end = timing.rank_ends[node.rank];
    end = std::max(end, to_seconds(node.time));
  }
  timing.seconds = std::ranges::max(timing.rank_ends);
  if (ranks_alike_ > 1) timing.rank_ends.assign(ranks_alike_, timing.seconds);
  for (const Plan& plan : keeps_steps_ ? plans : plans.first(0)) {
    std::vector<StepTime>& steps = timing.steps.emplace_back();
    for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
      const std::uint32_t number = numbers_.of(plan.rank, i);
      steps.push_back({to_seconds(begins_[number]), to_seconds(nodes_[number].time)});
    }
  }
  const Link busiest = links_.busiest();
  if (links_.busy(busiest) == 0) return timing;
  timing.busiest_link = links_.name(busiest);
  // What NICs let pass at once is paid for by the same operation when it comes again.
  timing.seconds = std::max(timing.seconds, to_seconds(links_.busy(busiest)));
  timing.busiest_share = to_seconds(links_.busy(busiest)) / timing.seconds;
  return timing;
}

Result<Timing> run(std::span<const Plan> plans, const Result<plan::Matches>& lanes,
                   const choose::Network& network, const SimulateOptions& options) {
  if (!lanes.ok()) return lanes.status();
  Course course(plans, *lanes, network, options);
  if (course.run()) return course.timing(plans);
  return Status(StatusCode::invalid_argument,
                fmt::format("simulate: the steps of {} wait for each other in a circle",
                            plans.front().algorithm))
      .with_hint("verify the plans: that names the steps");
}

}  // namespace

Result<Timing> simulate(std::span<const Plan> plans, const choose::Network& network,
                        const SimulateOptions& options) {
  if (Status status = check_network(network); !status.ok()) return status;
  if (plans.empty()) return Status(StatusCode::invalid_argument, "simulate: no plans");
  return run(plans, plan::match_lanes(plans), network, options);
}

bool are_alike(const plan::Algorithm& algorithm, std::uint32_t ranks,
               const choose::Network& network) noexcept {
  const bool is_one_switch = network.ranks_per_host == 1 && network.hosts_per_leaf == 0;
  const bool is_one_host = network.ranks_per_host >= ranks && network.memory_bandwidth == 0;
  const bool shares_processors = network.processors > 0 && network.processors < ranks;
  return algorithm.symmetry != plan::Symmetry::none && ranks > 1 && !shares_processors &&
         (is_one_switch || is_one_host);
}

Result<Timing> simulate_alike(const Plan& of_rank_0, const choose::Network& network,
                              const SimulateOptions& options) {
  if (Status status = check_network(network); !status.ok()) return status;
  return run({&of_rank_0, 1}, plan::match_lanes_of_all(of_rank_0), network, options);
}

}  // namespace hocket::sim
