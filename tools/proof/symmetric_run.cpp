#include "proof/symmetric_run.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "proof/describe.hpp"

namespace hocket::proof {

using plan::Plan;
using plan::Rotation;
using plan::Step;

SymmetricRun::SymmetricRun(const Plan& plan, plan::Symmetry symmetry)
    : plan_(plan), symmetry_(symmetry), over_(plan.steps.size()), steps_left_(plan.steps.size()) {
  for (Turn* each : {&send_, &receive_, &own_}) find(*each);
}

std::optional<Event> SymmetricRun::next() {
  if (is_left(own_) && is_ready(own_)) {
    const Event event = {
        .step = {0, own_.step}, .receive = {}, .is_message = false, .round = own_.over - 1};
    pass_on(own_, own_.over);
    return event;
  }
  if (!is_left(send_) || !is_left(receive_) || !belong_together()) return std::nullopt;
  if (!is_ready(send_) || !is_ready(receive_)) return std::nullopt;
  const std::uint32_t over = std::max(send_.over, receive_.over) + 1;
  const Event event = {.step = {0, send_.step},
                       .receive = {plan_.steps[send_.step].peer, receive_.step},
                       .is_message = true,
                       .round = over - 1};
  pass_on(send_, over);
  pass_on(receive_, over);
  ++messages_;
  rounds_ = std::max(rounds_, over - 1);
  return event;
}

bool SymmetricRun::is_left(const Turn& turn) const noexcept {
  return turn.step < plan_.steps.size();
}

void SymmetricRun::find(Turn& turn) const noexcept {
  const auto is_of_kind = [&](const Step& step) {
    if (turn.kind == Kind::own) return !step.communicates();
    return turn.kind == Kind::send ? step.sends() : step.receives();
  };
  while (is_left(turn) && !is_of_kind(plan_.steps[turn.step])) ++turn.step;
  if (is_left(turn)) turn.awaited = plan_.awaited(plan_.steps[turn.step]);
}

bool SymmetricRun::is_ready(Turn& turn) const noexcept {
  for (; !turn.awaited.empty(); turn.awaited = turn.awaited.subspan(1)) {
    const std::uint32_t over = over_[turn.awaited.front()];
    if (over == 0) return false;
    turn.over = std::max(turn.over, over);
  }
  return true;
}

void SymmetricRun::pass_on(Turn& turn, std::uint32_t over) noexcept {
  over_[turn.step++] = over;
  turn.over = over;
  --steps_left_;
  find(turn);
}

/// The next send, at rank 0, and the next receive at the rank that it goes to.
bool SymmetricRun::belong_together() const noexcept {
  const Step& send = plan_.steps[send_.step];
  const Rotation rotation(plan_.problem, plan_.shape, symmetry_, send.peer);
  const Step receive = rotation.step(plan_.steps[receive_.step]);
  return receive.peer == 0 && receive.lane == send.lane && receive.count == send.count &&
         plan::have_same_sizes(plan_.shape.blocks_per_chunk, send.from, receive.to);
}

Status SymmetricRun::describe_stop() const {
  std::string steps;
  for (const Turn* each : {&send_, &receive_, &own_}) {
    if (!is_left(*each)) continue;
    steps += fmt::format("{}{}", steps.empty() ? "" : ", ", locate(plan_, each->step));
  }
  return Status(
      StatusCode::invalid_argument,
      fmt::format("messages do not fit together, or steps wait for each other in a cycle, "
                  "where all ranks have come to the like of {}",
                  steps));
}

}  // namespace hocket::proof
