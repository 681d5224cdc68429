#include "proof/lanes.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "proof/describe.hpp"

namespace hocket::plan {

namespace {

struct Receive {
  std::uint32_t rank;
  std::uint32_t step;
};

class Matcher {
 public:
  explicit Matcher(std::span<const Plan> plans);

  Status match_all();
  [[nodiscard]] Matches take() { return std::move(matches_); }

 private:
  /// Sends on one lane that have no receive yet, and the last one ever.
  struct Queue {
    std::uint32_t head = no_step;
    std::uint32_t last = no_step;
  };

  void sort_receives();
  Status match_sends_of(std::uint32_t rank);
  Status match(std::uint32_t sender, const Receive& receive);
  Status find_left_over(std::uint32_t sender);
  [[nodiscard]] Queue& queue(std::uint32_t to, std::uint8_t lane) {
    return queues_[std::size_t{to} * lane_count_ + lane];
  }

  std::span<const Plan> plans_;
  Matches matches_;
  std::uint32_t lane_count_ = 1;
  std::vector<Receive> receives_;             // by sender, and for each in the order of the ranks
  std::vector<std::uint32_t> first_receive_;  // of each sender
  std::vector<Queue> queues_;                 // of one sender, to whom and on which lane
  std::vector<std::uint32_t> later_;          // by send: the next one on its lane
};

Matcher::Matcher(std::span<const Plan> plans) : plans_(plans) {
  matches_.first.push_back(0);
  for (const Plan& plan : plans) {
    matches_.first.push_back(matches_.first.back() + static_cast<std::uint32_t>(plan.steps.size()));
    for (const Step& step : plan.steps) {
      lane_count_ = std::max<std::uint32_t>(lane_count_, step.lane + 1U);
    }
  }
  matches_.partner.assign(matches_.first.back(), no_step);
  matches_.earlier.assign(matches_.first.back(), no_step);
  later_.assign(matches_.first.back(), no_step);
  queues_.resize(plans.size() * lane_count_);
}

void Matcher::sort_receives() {
  first_receive_.assign(plans_.size() + 1, 0);
  for (const Plan& plan : plans_) {
    for (const Step& step : plan.steps) {
      if (step.receives()) ++first_receive_[step.peer + 1];
    }
  }
  for (std::size_t i = 1; i <= plans_.size(); ++i) first_receive_[i] += first_receive_[i - 1];
  receives_.resize(first_receive_.back());
  std::vector<std::uint32_t> next = first_receive_;
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    const std::vector<Step>& steps = plans_[rank].steps;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      if (steps[i].receives()) receives_[next[steps[i].peer]++] = {rank, i};
    }
  }
}

Status Matcher::match_all() {
  sort_receives();
  for (std::uint32_t rank = 0; rank < plans_.size(); ++rank) {
    if (Status status = match_sends_of(rank); !status.ok()) return status;
  }
  return {};
}

Status Matcher::match_sends_of(std::uint32_t rank) {
  const std::vector<Step>& steps = plans_[rank].steps;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].sends()) continue;
    const std::uint32_t number = matches_.first[rank] + i;
    Queue& lane = queue(steps[i].peer, steps[i].lane);
    matches_.earlier[number] = lane.last;
    if (lane.last == no_step) {
      lane.head = number;
    } else {
      later_[lane.last] = number;
    }
    lane.last = number;
  }
  for (std::uint32_t i = first_receive_[rank]; i < first_receive_[rank + 1]; ++i) {
    if (Status status = match(rank, receives_[i]); !status.ok()) return status;
  }
  return find_left_over(rank);
}

Status Matcher::match(std::uint32_t sender, const Receive& receive) {
  const Plan& plan = plans_[receive.rank];
  const Step& step = plan.steps[receive.step];
  Queue& lane = queue(receive.rank, step.lane);
  if (lane.head == no_step) {
    return Status(StatusCode::invalid_argument, fmt::format("{}: rank {} has no send for it",
                                                            locate(plan, receive.step), sender));
  }
  const std::uint32_t send = lane.head - matches_.first[sender];
  const Step& other = plans_[sender].steps[send];
  if (other.count != step.count ||
      !plan::have_same_sizes(plan.shape.blocks_per_chunk, other.from, step.to)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{}: what comes is of another size: {}", locate(plan, receive.step),
                              locate(plans_[sender], send)));
  }
  const std::uint32_t number = matches_.first[receive.rank] + receive.step;
  matches_.partner[lane.head] = number;
  matches_.partner[number] = lane.head;
  lane.head = later_[lane.head];
  return {};
}

/// And makes the queues ready for the next sender.
Status Matcher::find_left_over(std::uint32_t sender) {
  const Plan& plan = plans_[sender];
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    if (!step.sends()) continue;
    if (matches_.partner[matches_.first[sender] + i] == no_step) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("{}: rank {} has no receive for it", locate(plan, i), step.peer));
    }
    queue(step.peer, step.lane) = {};
  }
  return {};
}

}  // namespace

Result<Matches> match_lanes(std::span<const Plan> plans) {
  Matcher matcher(plans);
  if (Status status = matcher.match_all(); !status.ok()) return status;
  return matcher.take();
}

Result<Matches> match_lanes_of_all(const Plan& of_rank_0) {
  const std::vector<Step>& steps = of_rank_0.steps;
  Matches matches{.first = {0, static_cast<std::uint32_t>(steps.size())},
                  .partner = std::vector(steps.size(), no_step),
                  .earlier = std::vector(steps.size(), no_step)};
  std::size_t lanes = 1;
  for (const Step& step : steps) lanes = std::max<std::size_t>(lanes, step.lane + 1U);
  std::vector<std::uint32_t> last(of_rank_0.problem.size * lanes, no_step);  // send, by lane
  std::uint32_t receive = 0;
  for (std::uint32_t send = 0; send < steps.size(); ++send) {
    if (!steps[send].sends()) continue;
    while (receive < steps.size() && !steps[receive].receives()) ++receive;
    const bool fit = receive < steps.size() && steps[receive].lane == steps[send].lane &&
                     steps[receive].count == steps[send].count &&
                     steps[receive].peer + steps[send].peer == of_rank_0.problem.size;
    if (!fit) {
      return Status(
          StatusCode::invalid_argument,
          fmt::format("{}: the next receive is not for the like of it", locate(of_rank_0, send)));
    }
    matches.partner[send] = receive;
    matches.partner[receive++] = send;
    std::uint32_t& earlier = last[steps[send].peer * lanes + steps[send].lane];
    matches.earlier[send] = earlier;
    earlier = send;
  }
  while (receive < steps.size() && !steps[receive].receives()) ++receive;
  if (receive == steps.size()) return matches;
  return Status(StatusCode::invalid_argument,
                fmt::format("{}: nobody sends the like of it", locate(of_rank_0, receive)));
}

}  // namespace hocket::plan
