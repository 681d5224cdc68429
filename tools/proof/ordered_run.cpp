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
  added_ = 0;
  parts_.resize(problem.size);
  ranks_.clear();
  due_.clear();
  steps_left_ = 0;
  messages_ = 0;
  rounds_ = 0;
}

void OrderedRun::start(std::span<const Plan> plans) {
  start(plans.front().problem, plans.front().shape);
  parts_.resize(plans.size());
  for (const Plan& plan : plans) add(plan);
}

void OrderedRun::add(const Plan& plan) {
  if (implied_.size() < plan.steps.size()) implied_.resize(plan.steps.size());
  Part& part = parts_[added_++];
  part.make_room(plan);
  Move* send = part.sends.data();
  Move* receive = part.receives.data();
  OwnStep* own = part.own.data();
  Waits moves;      // so far
  Waits own_waits;  // of the last one
  for (std::uint32_t i = 0; const Step& step : plan.steps) {
    const Waits waits = waits_of(plan, step);
    if (step.sends()) {
      *send++ = {.step = step, .number = i, .waits = waits.receives};
      implied_[i] = {.sends = ++moves.sends};
    } else if (step.receives()) {
      *receive++ = {.step = step, .number = i, .waits = waits.sends};
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

void OrderedRun::Part::make_room(const Plan& plan) {
  std::size_t send_count = 0;
  std::size_t receive_count = 0;
  for (const Step& step : plan.steps) {
    send_count += step.sends() ? 1U : 0U;
    receive_count += step.receives() ? 1U : 0U;
  }
  const std::size_t own_count = plan.steps.size() - send_count - receive_count;
  if (sends.size() <= send_count) sends.resize(send_count + 1);
  if (receives.size() <= receive_count) receives.resize(receive_count + 1);
  if (own.size() <= own_count) own.resize(own_count + 1);
}

inline OrderedRun::Waits OrderedRun::waits_of(const Plan& plan, const Step& step) const noexcept {
  Waits waits;
  for (const std::uint32_t each : plan.awaited(step)) waits = most(waits, implied_[each]);
  return waits;
}

void OrderedRun::begin() {
  for (Part& part : parts_) {
    ranks_.push_back({.send_to = part.sends.front().step.peer,
                      .receive_from = part.receives.front().step.peer,
                      .own_waits = part.own.front().waits,
                      .sends = part.sends.data(),
                      .receives = part.receives.data(),
                      .own = part.own.data()});
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
  if (send.waits > there.over.receives || receive.waits > here.over.sends) return false;
  if (send.step.lane != receive.step.lane || send.step.count != receive.step.count ||
      !plan::have_same_sizes(blocks_per_chunk_, send.step.from, receive.step.to)) {
    return false;
  }
  const std::uint32_t over =
      1 + std::max({when_over(there.sends, there.over.sends), when_over(there.receives, send.waits),
                    when_over(here.receives, here.over.receives),
                    when_over(here.sends, receive.waits)});
  events_.push_back({.step = {sender, send.number},
                     .receive = {receiver, receive.number},
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
