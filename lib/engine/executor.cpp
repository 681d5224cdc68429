#include "engine/executor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "plan/describe.hpp"

namespace hocket::engine {
namespace {

using plan::Step;
using plan::StepKind;

/// What comes back with the completion of a message.
struct Token {
  std::uint32_t run = 0;
  std::uint32_t step = 0;
  std::uint32_t slot = no_slot;

  static constexpr std::uint32_t no_slot = (1U << 20) - 1;

  [[nodiscard]] std::uint64_t packed() const noexcept {
    return std::uint64_t{run} << 48 | std::uint64_t{slot} << 28 | step;
  }
  [[nodiscard]] static Token unpacked(std::uint64_t packed) noexcept {
    return {.run = static_cast<std::uint32_t>(packed >> 48),
            .step = static_cast<std::uint32_t>(packed & ((1U << 28) - 1)),
            .slot = static_cast<std::uint32_t>(packed >> 28 & no_slot)};
  }
};

/// Bytes of a range, from a position on, as the two parts of a message.
void fill_parts(TransportOp& op, std::byte* memory, const ByteRange& range, std::uint64_t begin,
                std::uint64_t bytes) noexcept {
  const std::uint64_t in_a_row = range.in_a_row(begin, bytes);
  op.first = {memory + range.at(begin), in_a_row};
  if (in_a_row < bytes) op.rest = {memory + range.wrap, bytes - in_a_row};
}

std::byte* memory_of(const Run& run, plan::Buffer buffer) noexcept {
  return run.memory[static_cast<std::size_t>(buffer)];
}

/// Combines or copies `bytes` of a step from a position on, as far as they lie in a row.
template <class Do>
void for_each_row(const ByteRange& from, const ByteRange& to, std::uint64_t begin,
                  std::uint64_t bytes, Do&& work) {
  for (std::uint64_t position = begin; position < begin + bytes;) {
    const std::uint64_t most = begin + bytes - position;
    const std::uint64_t row = to.in_a_row(position, from.in_a_row(position, most));
    work(from.at(position), to.at(position), position - begin, row);
    position += row;
  }
}

/// to = from op message
void reduce_message(const Run& run, std::uint32_t step_index, std::uint64_t begin,
                    std::uint64_t bytes, const std::byte* message) {
  const Binding& binding = *run.task.binding;
  const Step& step = binding.program().plan().steps[step_index];
  const Extent& extent = binding.extent(step_index);
  const std::byte* from = memory_of(run, step.from_buffer);
  std::byte* to = memory_of(run, step.to_buffer);
  for_each_row(
      extent.from, extent.to, begin, bytes,
      [&](std::uint64_t source, std::uint64_t target, std::uint64_t done, std::uint64_t row) {
        run.task.reduction->combine(to + target, from + source, message + done,
                                    row / binding.element_bytes());
      });
}

/// to = from, or to = to op from
void work_on(const Run& run, std::uint32_t step_index, std::uint64_t begin, std::uint64_t bytes) {
  const Binding& binding = *run.task.binding;
  const Step& step = binding.program().plan().steps[step_index];
  const Extent& extent = binding.extent(step_index);
  const std::byte* from = memory_of(run, step.from_buffer);
  std::byte* to = memory_of(run, step.to_buffer);
  for_each_row(extent.from, extent.to, begin, bytes,
               [&](std::uint64_t source, std::uint64_t target, std::uint64_t, std::uint64_t row) {
                 if (step.kind == StepKind::copy) {
                   // In place, a copy may be of a block to itself.
                   if (to + target != from + source) std::memcpy(to + target, from + source, row);
                   return;
                 }
                 run.task.reduction->combine(to + target, to + target, from + source,
                                             row / binding.element_bytes());
               });
}

/// How many bytes of a step may be begun: what it is abreast of is as far.
std::uint64_t limit_of(const Run& run, std::uint32_t step) noexcept {
  const Binding& binding = *run.task.binding;
  std::uint64_t limit = binding.extent(step).bytes;
  if (!run.cuts_through) return limit;
  for (const std::uint32_t other : binding.program().abreast_of(step)) {
    limit = std::min(limit, run.steps[other].done);
  }
  return limit;
}

Status wrong_length(const Run& run, std::uint32_t step_index, std::uint64_t expected,
                    std::uint64_t came) {
  const plan::Plan& plan = run.task.binding->program().plan();
  const Step& step = plan.steps[step_index];
  return Status(StatusCode::mismatch,
                fmt::format("a message of {} bytes came from rank {} where {} were expected", came,
                            step.peer, expected))
      .with_rank(static_cast<int>(plan.rank))
      .with_peer(static_cast<int>(step.peer))
      .with_step(static_cast<int>(step_index))
      .with_hint("do all ranks call the same operation with the same count and type?");
}

/// For which peer an operation waits.
Status too_late(const Run& run) {
  const plan::Plan& plan = run.task.binding->program().plan();
  Status status(StatusCode::timeout, "the operation was not over in time");
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (run.steps[i].under_way == 0) continue;
    const Step& step = plan.steps[i];
    status = Status(StatusCode::timeout,
                    fmt::format("rank {} has not {} in time", step.peer,
                                step.sends() ? "taken what was sent to it" : "sent what it owes"))
                 .with_peer(static_cast<int>(step.peer))
                 .with_step(static_cast<int>(i))
                 .with_hint("does that rank call the same operations in the same order?");
    if (step.receives()) break;  // what was sent may lie in a buffer for long
  }
  return std::move(status).with_rank(static_cast<int>(plan.rank));
}

}  // namespace

Executor::Executor(Transport& transport, const ExecutorOptions& options)
    : transport_(transport), options_(options), slots_(options.segment_bytes) {}

std::uint32_t Executor::take_run() {
  if (free_runs_.empty()) {
    runs_.push_back(std::make_unique<Run>());
    free_runs_.reserve(runs_.size());
    return static_cast<std::uint32_t>(runs_.size() - 1);
  }
  const std::uint32_t id = free_runs_.back();
  free_runs_.pop_back();
  return id;
}

void Executor::start(const Task& task) {
  Group& group = *task.group;
  task.work->begin();
  if (!group.failure.ok()) {
    // Other ranks may wait at channels that are new here.
    for (const ChannelId channel : task.binding->channels()) {
      transport_.close(channel, group.failure);
    }
    return task.work->finish(group.failure);
  }
  if (group.is_busy) return group.queue.push_back(task);
  begin(task);
  begin_next();
  flush();
}

void Executor::begin(const Task& task) {
  task.group->is_busy = true;
  const std::uint32_t id = take_run();
  Run& run = *runs_[id];
  run.begin(task, options_.segment_bytes);
  for (std::uint32_t step = 0; step < run.steps.size(); ++step) {
    if (run.steps[step].waits == 0) ready_.push_back({id, step});
  }
  drain();
  finish_if_over(id);
}

void Executor::begin_next() {
  while (!free_groups_.empty()) {
    Group& group = *free_groups_.back();
    free_groups_.pop_back();
    if (group.queue_head == group.queue.size()) {
      group.queue.clear();
      group.queue_head = 0;
      continue;
    }
    begin(group.queue[group.queue_head++]);
  }
}

bool Executor::progress() {
  const std::size_t count = transport_.poll(completions_);
  for (std::size_t i = 0; i < count; ++i) complete(completions_[i]);
  const bool has_local_work = !local_.empty();
  if (has_local_work) {
    const StepId id = local_.back();
    local_.pop_back();
    runs_[id.run]->steps[id.step].is_queued = false;
    advance(id);
    drain();
    finish_if_over(id.run);
  }
  begin_next();
  const bool has_posted = flush();
  return count > 0 || has_local_work || has_posted;
}

void Executor::fail(Group& group, const Status& why) {
  if (!group.failure.ok()) return;
  group.failure = why;
  for (const ChannelId channel : group.channels) transport_.close(channel, why);
  for (std::uint32_t id = 0; id < runs_.size(); ++id) {
    Run& run = *runs_[id];
    if (run.task.group != &group) continue;
    run.failure = why;
    drop_unposted(id);
    finish_if_over(id);
  }
  for (; group.queue_head < group.queue.size(); ++group.queue_head) {
    group.queue[group.queue_head].work->finish(why);
  }
}

void Executor::fail_all(const Status& why) {
  for (const auto& run : runs_) {
    if (run->task.group != nullptr) fail(*run->task.group, why);
  }
}

void Executor::expire(Instant now) {
  for (const auto& run : runs_) {
    if (run->task.group == nullptr || !run->task.deadline.passed(now)) continue;
    if (run->failure.ok()) fail(*run->task.group, too_late(*run));
  }
}

Deadline Executor::deadline() const noexcept {
  Deadline first;
  for (const auto& run : runs_) {
    if (run->task.group != nullptr && run->failure.ok())
      first = first.or_sooner(run->task.deadline);
  }
  return first;
}

void Executor::drop_unposted(std::uint32_t id) {
  std::erase_if(local_, [&](const StepId& each) { return each.run == id; });
  const auto drop = [&](const TransportOp& op) {
    const Token token = Token::unpacked(op.token);
    if (token.run != id) return false;
    if (token.slot != Token::no_slot) slots_.give_back(token.slot);
    --runs_[id]->under_way;
    return true;
  };
  std::erase_if(outgoing_, drop);
  std::erase_if(refused_, drop);
}

void Executor::finish_if_over(std::uint32_t id) {
  Run& run = *runs_[id];
  if (run.task.work == nullptr || run.under_way > 0) return;
  if (run.failure.ok() && run.steps_left > 0) return;
  if (run.failure.ok()) run.finish();
  Work* const work = std::exchange(run.task.work, nullptr);
  Group* const group = std::exchange(run.task.group, nullptr);
  group->is_busy = false;
  if (group->failure.ok()) free_groups_.push_back(group);
  free_runs_.push_back(id);
  work->finish(std::move(run.failure));
}

void Executor::drain() {
  // By number: the list grows meanwhile.
  for (std::size_t i = 0; i < ready_.size(); ++i) advance(ready_[i]);
  ready_.clear();
}

void Executor::advance(StepId id) {
  Run& run = *runs_[id.run];
  const Run::StepState& state = run.steps[id.step];
  if (!run.failure.ok() || state.waits > 0 || state.is_over) return;
  if (state.is_queued) return;  // its turn comes
  const std::uint64_t limit = limit_of(run, id.step);
  if (run.task.binding->program().places()[id.step].port == none) return work_locally(id, limit);
  post_messages(id, limit);
}

void Executor::post_messages(StepId id, std::uint64_t limit) {
  Run& run = *runs_[id.run];
  const Binding& binding = *run.task.binding;
  const Program::Place& place = binding.program().places()[id.step];
  if (run.heads[place.port] != id.step) return;
  Run::StepState& state = run.steps[id.step];
  const std::uint64_t bytes = binding.extent(id.step).bytes;
  while (state.posted < bytes && state.under_way < options_.segments_max) {
    const std::uint64_t segment = std::min(options_.segment_bytes, bytes - state.posted);
    if (state.posted + segment > limit) return;
    post_message(id, state.posted, segment);
    state.posted += segment;
    ++state.under_way;
    ++run.under_way;
  }
  if (state.posted < bytes) return;
  run.heads[place.port] = place.next_on_port;
  if (place.next_on_port != none) ready_.push_back({id.run, place.next_on_port});
  if (bytes == 0) end_step(id);
}

void Executor::post_message(StepId id, std::uint64_t begin, std::uint64_t bytes) {
  const Run& run = *runs_[id.run];
  const Binding& binding = *run.task.binding;
  const Step& step = binding.program().plan().steps[id.step];
  const Extent& extent = binding.extent(id.step);
  Token token{.run = id.run, .step = id.step};
  TransportOp& op = outgoing_.emplace_back();
  op.channel = binding.channel(binding.program().places()[id.step].port);
  switch (step.kind) {
    case StepKind::send:
      fill_parts(op, memory_of(run, step.from_buffer), extent.from, begin, bytes);
      break;
    case StepKind::recv:
      op.kind = TransportOp::Kind::recv;
      fill_parts(op, memory_of(run, step.to_buffer), extent.to, begin, bytes);
      break;
    default:
      op.kind = TransportOp::Kind::recv;
      op.may_lend = true;
      token.slot = slots_.take();
      op.first = {slots_.memory(token.slot), bytes};
  }
  op.token = token.packed();
}

void Executor::work_locally(StepId id, std::uint64_t limit) {
  Run& run = *runs_[id.run];
  Run::StepState& state = run.steps[id.step];
  const std::uint64_t bytes = std::min(options_.segment_bytes, limit - state.done);
  work_on(run, id.step, state.done, bytes);
  state.done += bytes;
  if (state.done < limit && !state.is_queued) {
    state.is_queued = true;
    local_.push_back(id);
  }
  if (bytes > 0 || state.done == run.task.binding->extent(id.step).bytes) moved_on(id);
}

void Executor::moved_on(StepId id) {
  Run& run = *runs_[id.run];
  const Program& program = run.task.binding->program();
  Run::StepState& state = run.steps[id.step];
  if (state.done == run.task.binding->extent(id.step).bytes) return end_step(id);
  if (program.places()[id.step].port != none) ready_.push_back(id);
  for (const Follower& follower : program.followers(id.step)) {
    if (follower.is_abreast) ready_.push_back({id.run, follower.step});
  }
}

void Executor::end_step(StepId id) {
  Run& run = *runs_[id.run];
  run.steps[id.step].is_over = true;
  --run.steps_left;
  for (const Follower& follower : run.task.binding->program().followers(id.step)) {
    const bool was_waited_for = !(run.cuts_through && follower.is_abreast);
    if (was_waited_for && --run.steps[follower.step].waits > 0) continue;
    ready_.push_back({id.run, follower.step});
  }
}

void Executor::complete(TransportCompletion& completion) {
  const Token token = Token::unpacked(completion.token);
  const StepId id = {token.run, token.step};
  Run& run = *runs_[token.run];
  Run::StepState& state = run.steps[token.step];
  --run.under_way;
  --state.under_way;
  const Binding& binding = *run.task.binding;
  const Step& step = binding.program().plan().steps[token.step];
  const std::uint64_t expected =
      std::min(options_.segment_bytes, binding.extent(token.step).bytes - state.done);
  Status failure = std::move(completion.status);
  if (failure.ok() && completion.bytes != expected) {
    failure = wrong_length(run, token.step, expected, completion.bytes);
  }
  if (failure.ok() && run.failure.ok() && step.kind == StepKind::recv_reduce) {
    const bool is_lent = completion.lent != nullptr;
    reduce_message(run, token.step, state.done, expected,
                   is_lent ? completion.lent : slots_.memory(token.slot));
  }
  if (completion.lent != nullptr) transport_.give_back(completion.lent);
  if (token.slot != Token::no_slot) slots_.give_back(token.slot);
  if (!failure.ok()) {
    // May end this run and others, so that nothing of them is touched behind it.
    if (run.failure.ok()) return fail(*run.task.group, failure);
  } else if (run.failure.ok()) {
    state.done += expected;
    moved_on(id);
    drain();
  }
  finish_if_over(token.run);
}

bool Executor::flush() {
  bool has_posted = false;
  while (!outgoing_.empty()) {
    const std::size_t taken = transport_.post(outgoing_);
    has_posted |= taken > 0;
    if (taken == outgoing_.size()) break;
    // No room for one: its channel must wait, and the others go on.
    const ChannelId full = outgoing_[taken].channel;
    outgoing_.erase(outgoing_.begin(), outgoing_.begin() + static_cast<std::ptrdiff_t>(taken));
    std::erase_if(outgoing_, [&](const TransportOp& op) {
      if (op.channel != full) return false;
      refused_.push_back(op);
      return true;
    });
  }
  outgoing_.clear();
  std::swap(outgoing_, refused_);
  return has_posted;
}

}  // namespace hocket::engine
