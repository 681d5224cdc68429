#include "proof/ordered_run.hpp"

#include <algorithm>
#include <utility>

namespace hocket::proof {

using plan::Plan;
using plan::Step;

namespace {

/// So few that what they touched is still in the cache.
constexpr std::size_t events_at_once = 512;
/// So far ahead that a move is there when its turn comes.
constexpr std::uint32_t moves_ahead = 2;

}  // namespace

void OrderedRun::start(const plan::Problem& problem, const plan::Shape& shape) {
  blocks_per_chunk_ = shape.blocks_per_chunk;
  arena_.clear();
  parts_.clear();
  parts_.reserve(problem.size);
  ranks_.clear();
  due_.clear();
  steps_left_ = 0;
  messages_ = 0;
  rounds_ = 0;
}

void OrderedRun::start(std::span<const Plan> plans) {
  start(plans.front().problem, plans.front().shape);
  for (const Plan& plan : plans) add(plan);
}

void OrderedRun::add(const Plan& plan) {
  if (implied_.size() < plan.steps.size()) implied_.resize(plan.steps.size());
  auto [send, receive, own] = parts_.emplace_back(take_part(plan));
  Waits moves;      // so far
  Waits own_waits;  // of the last one
  for (std::uint32_t i = 0; const Step& step : plan.steps) {
    const Waits waits = waits_of(plan, step);
    if (step.sends()) {
      *send++ = Move(step, i, waits.receives);
      implied_[i] = {.sends = ++moves.sends};
    } else if (step.receives()) {
      *receive++ = Move(step, i, waits.sends);
      implied_[i] = {.receives = ++moves.receives};
    } else {
      own_waits = most(own_waits, waits);
      *own++ = {.step = step, .number = i, .waits = own_waits};
      implied_[i] = own_waits;
    }
    ++i;
  }
  *send = {};
  *receive = {};
  *own = {};
  steps_left_ += plan.steps.size();
}

OrderedRun::Part OrderedRun::take_part(const Plan& plan) {
  std::size_t sends = 0;
  std::size_t receives = 0;
  for (const Step& step : plan.steps) {
    sends += step.sends() ? 1U : 0U;
    receives += step.receives() ? 1U : 0U;
  }
  const std::size_t own = plan.steps.size() - sends - receives;
  return {.sends = arena_.take<Move>(sends + 1),
          .receives = arena_.take<Move>(receives + 1),
          .own = arena_.take<OwnStep>(own + 1)};
}

inline OrderedRun::Waits OrderedRun::waits_of(const Plan& plan, const Step& step) const noexcept {
  Waits waits;
  for (const std::uint32_t each : plan.awaited(step)) waits = most(waits, implied_[each]);
  return waits;
}

void OrderedRun::begin() {
  for (const Part& part : parts_) {
    ranks_.push_back({.send_to = part.sends->step.peer,
                      .receive_from = part.receives->step.peer,
                      .own_waits = part.own->waits,
                      .sends = part.sends,
                      .receives = part.receives,
                      .own = part.own});
  }
  for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
    take_own(rank);
    make_due(rank);
  }
}

inline void OrderedRun::make_due(std::uint32_t rank) {
  if (!std::exchange(ranks_[rank].is_due, true)) due_.push_back(rank);
}

std::span<const Event> OrderedRun::next() {
  events_.clear();
  if (ranks_.empty()) begin();
  while (!due_.empty() && events_.size() < events_at_once) {
    const std::uint32_t rank = due_.back();
    due_.pop_back();
    ranks_[rank].is_due = !go_on(rank);
    if (ranks_[rank].is_due) due_.push_back(rank);
  }
  return events_;
}

bool OrderedRun::go_on(std::uint32_t rank) {
  const Rank& here = ranks_[rank];
  for (bool goes_on = true; goes_on;) {
    if (events_.size() >= events_at_once) return false;
    goes_on = false;
    const std::uint32_t to = here.send_to;
    if (to != nobody && ranks_[to].receive_from == rank) goes_on = pass_message(rank, to);
    const std::uint32_t from = here.receive_from;
    if (from != nobody && ranks_[from].send_to == rank) goes_on |= pass_message(from, rank);
  }
  return true;
}

inline void OrderedRun::take_own(std::uint32_t rank) {
  Rank& here = ranks_[rank];
  while (here.own_waits.sends <= here.over.sends && here.own_waits.receives <= here.over.receives) {
    const OwnStep& own = *here.own++;
    const std::uint32_t over = std::max(when_over(here.sends, own.waits.sends),
                                        when_over(here.receives, own.waits.receives));
    events_.push_back({.step = {rank, own.number},
                       .receive = {},
                       .is_message = false,
                       .round = over - 1,
                       .from = &own.step,
                       .to = &own.step});
    here.own_waits = here.own->waits;
    --steps_left_;
  }
}

bool OrderedRun::pass_message(std::uint32_t sender, std::uint32_t receiver) {
  Rank& there = ranks_[sender];
  Rank& here = ranks_[receiver];
  Move& send = there.sends[there.over.sends];
  Move& receive = here.receives[here.over.receives];
  if (send.waits() > there.over.receives || receive.waits() > here.over.sends) return false;
  if (send.step.lane != receive.step.lane || send.step.count != receive.step.count ||
      !plan::have_same_sizes(blocks_per_chunk_, send.step.from, receive.step.to)) {
    return false;
  }
  const std::uint32_t over = 1 + std::max({when_over(there.sends, there.over.sends),
                                           when_over(there.receives, send.waits()),
                                           when_over(here.receives, here.over.receives),
                                           when_over(here.sends, receive.waits())});
  events_.push_back({.step = {sender, send.number()},
                     .receive = {receiver, receive.number()},
                     .is_message = true,
                     .round = over - 1,
                     .from = &send.step,
                     .to = &receive.step});
  send.over = over;
  receive.over = over;
  ++there.over.sends;
  ++here.over.receives;
  there.send_to = (&send)[1].step.peer;
  here.receive_from = (&receive)[1].step.peer;
  __builtin_prefetch(&send + moves_ahead);
  __builtin_prefetch(&receive + moves_ahead);
  take_own(sender);
  take_own(receiver);
  make_due(sender);
  make_due(receiver);
  ++messages_;
  rounds_ = std::max(rounds_, over - 1);
  steps_left_ -= 2;
  return true;
}

}  // namespace hocket::proof
