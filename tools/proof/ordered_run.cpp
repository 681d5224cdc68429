#include "proof/ordered_run.hpp"

#include <algorithm>
#include <utility>

namespace hocket::proof {

using plan::Plan;
using plan::Step;

namespace {

/// So few that what they touched is still in the cache.
constexpr std::size_t events_at_once = 512;
/// A step of a rank itself, a message from it and one to it.
constexpr std::size_t events_of_a_try = 3;
/// So far ahead that a step is there when its turn comes.
constexpr std::uint32_t steps_ahead = 4;

}  // namespace

inline bool OrderedRun::is_ready(const Rank& rank, Turn& turn) noexcept {
  for (; turn.awaited != turn.awaited_end; ++turn.awaited) {
    const std::uint32_t over = rank.over[*turn.awaited];
    if (over == 0) return false;
    turn.over = std::max(turn.over, over);
  }
  return true;
}

/// When it can go, all other ranks have been looked at, and this one's memory is cold: so all that
/// can be looked at is looked at now.
inline void OrderedRun::come_to_step(const Rank& rank, Turn& turn) noexcept {
  const Step& step = rank.steps[turn.step];
  turn.peer = step.peer;
  turn.lane = step.lane;
  turn.first = step.receives() ? step.to : step.from;
  turn.count = step.count;
  turn.awaited = rank.after + step.after_first;
  turn.awaited_end = turn.awaited + step.after_count;
  __builtin_prefetch(&step + steps_ahead);
  static_cast<void>(is_ready(rank, turn));
}

inline void OrderedRun::find_send(Rank& rank) noexcept {
  Turn& turn = rank.send;
  while (turn.step < rank.step_count && !rank.steps[turn.step].sends()) ++turn.step;
  if (turn.step < rank.step_count) come_to_step(rank, turn);
}

inline void OrderedRun::find_receive(Rank& rank) noexcept {
  Turn& turn = rank.receive;
  while (turn.step < rank.step_count && !rank.steps[turn.step].receives()) ++turn.step;
  if (turn.step < rank.step_count) come_to_step(rank, turn);
}

inline void OrderedRun::pass_on(Rank& rank, Turn& turn, std::uint32_t over) noexcept {
  rank.over[turn.step++] = over;
  turn.over = over;
  turn.peer = nobody;
}

inline void OrderedRun::make_due(std::uint32_t rank) {
  if (!std::exchange(ranks_[rank].is_due, true)) due_.push_back(rank);
}

void OrderedRun::start(std::span<const Plan> plans) {
  blocks_per_chunk_ = plans.front().shape.blocks_per_chunk;
  steps_left_ = 0;
  for (const Plan& plan : plans) steps_left_ += plan.steps.size();
  over_.assign(steps_left_, 0);
  ranks_.assign(plans.size(), {});
  due_.clear();
  std::uint32_t* over = over_.data();
  for (const Plan& plan : plans) {
    Rank& rank = ranks_[plan.rank];
    rank.step_count = static_cast<std::uint32_t>(plan.steps.size());
    rank.steps = plan.steps.data();
    rank.after = plan.after.data();
    rank.over = std::exchange(over, over + rank.step_count);
    find_send(rank);
    find_receive(rank);
    make_due(plan.rank);
  }
  messages_ = 0;
  rounds_ = 0;
}

std::span<const Event> OrderedRun::next() {
  events_.resize(events_at_once);
  event_count_ = 0;
  while (!due_.empty() && event_count_ + events_of_a_try <= events_at_once) {
    const std::uint32_t rank = due_.back();
    due_.pop_back();
    ranks_[rank].is_due = !go_on(rank);
    if (ranks_[rank].is_due) due_.push_back(rank);  // there is no room for more events now
  }
  return std::span(events_).first(event_count_);
}

bool OrderedRun::go_on(std::uint32_t rank) {
  const Rank& here = ranks_[rank];
  for (bool goes_on = true; goes_on;) {
    if (event_count_ + events_of_a_try > events_at_once) return false;
    goes_on = take_own(rank);
    const std::uint32_t to = here.send.peer;
    const std::uint32_t from = here.receive.peer;
    if (to != nobody && ranks_[to].receive.peer == rank) goes_on |= pass_message(rank, to);
    if (from != nobody && ranks_[from].send.peer == rank) goes_on |= pass_message(from, rank);
  }
  return true;
}

/// Those behind the next send and the next receive are not looked for yet.
bool OrderedRun::take_own(std::uint32_t rank) {
  Rank& here = ranks_[rank];
  Turn& turn = here.own;
  if (turn.peer == nobody) {
    const std::uint32_t end = std::max(here.send.step, here.receive.step);
    while (turn.step < end && here.steps[turn.step].communicates()) ++turn.step;
    if (turn.step == end) return false;
    come_to_step(here, turn);
  }
  if (!is_ready(here, turn)) return false;
  events_[event_count_++] = {
      .step = {rank, turn.step}, .receive = {}, .is_message = false, .round = turn.over - 1};
  pass_on(here, turn, turn.over);
  --steps_left_;
  return true;
}

bool OrderedRun::pass_message(std::uint32_t sender, std::uint32_t receiver) {
  Rank& there = ranks_[sender];
  Rank& here = ranks_[receiver];
  Turn& send = there.send;
  Turn& receive = here.receive;
  if (send.lane != receive.lane) return false;
  if (!is_ready(there, send) || !is_ready(here, receive)) return false;
  if (send.count != receive.count ||
      !plan::have_same_sizes(blocks_per_chunk_, send.first, receive.first)) {
    return false;
  }
  const std::uint32_t over = std::max(send.over, receive.over) + 1;
  events_[event_count_++] = {.step = {sender, send.step},
                             .receive = {receiver, receive.step},
                             .is_message = true,
                             .round = over - 1};
  pass_on(there, send, over);
  find_send(there);
  pass_on(here, receive, over);
  find_receive(here);
  make_due(sender);
  make_due(receiver);
  ++messages_;
  rounds_ = std::max(rounds_, over - 1);
  steps_left_ -= 2;
  return true;
}

}  // namespace hocket::proof
