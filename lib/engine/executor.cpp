#include "engine/executor.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/exception.hpp"

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
  /// In place of a run: an op of the mailbox in slot.
  static constexpr std::uint32_t mail = UINT16_MAX;

  [[nodiscard]] std::uint64_t packed() const noexcept {
    return std::uint64_t{run} << 48 | std::uint64_t{slot} << 28 | step;
  }
  [[nodiscard]] static Token unpacked(std::uint64_t packed) noexcept {
    return {.run = static_cast<std::uint32_t>(packed >> 48),
            .step = static_cast<std::uint32_t>(packed & ((1U << 28) - 1)),
            .slot = static_cast<std::uint32_t>(packed >> 28 & no_slot)};
  }
};

constexpr std::size_t posted_together = 16;
/// Between two looks at whether operations get on. A question costs one message.
constexpr Duration stall_pause_min = std::chrono::milliseconds(30);
constexpr Duration stall_pause_max = std::chrono::seconds(1);
constexpr std::uint32_t busy_polls_max = 8;
/// To copy as much takes about as long as to post a message.
constexpr std::uint64_t long_work_bytes = 16 << 10;

Status wrong_length(const Run& run, std::uint32_t step_index, std::uint64_t expected,
                    std::uint64_t came) {
  const plan::Plan& plan = run.plan();
  const Step& step = plan.steps[step_index];
  return Status(StatusCode::mismatch,
                fmt::format("a message of {} bytes came from rank {} where {} were expected", came,
                            step.peer, expected))
      .with_rank(static_cast<int>(plan.rank))
      .with_peer(static_cast<int>(step.peer))
      .with_step(static_cast<int>(step_index))
      .with_hint("do all ranks call the same operation with the same count and type?");
}

/// Whether the message that does not fit belongs to a later call of its sender: then the two ranks
/// differ in an earlier call, which is not known here.
bool is_of_later_call(const Run& run, const TransportCompletion& completion) {
  const bool has_tag = completion.status.ok() || completion.status.code() == StatusCode::mismatch;
  return has_tag && completion.tag != 0 && completion.tag != run.tag &&
         !Tag::have_same_history(completion.tag, run.tag) &&
         !run.task.group->calls.in_place_of(completion.tag);
}

Status failure_of(const Run& run, std::uint32_t step, std::uint64_t expected,
                  TransportCompletion& completion) {
  const bool is_too_long = completion.status.code() == StatusCode::mismatch && completion.tag != 0;
  if ((completion.status.ok() || is_too_long) && completion.tag != run.tag) {
    const plan::Plan& plan = run.plan();
    // What this rank called there may have ended well, as that of a root that only sends.
    const std::uint64_t ours = run.task.group->calls.in_place_of(completion.tag).value_or(run.tag);
    return disagreement(ours, completion.tag, plan.rank, plan.steps[step].peer)
        .with_step(static_cast<int>(step));
  }
  if (completion.status.ok()) return wrong_length(run, step, expected, completion.bytes);
  const plan::Plan& plan = run.plan();
  Group& group = *run.task.group;
  Status why = group.in_group(std::move(completion.status), plan.rank, plan.steps[step].peer);
  if (why.step() < 0) why = std::move(why).with_step(static_cast<int>(step));
  return std::move(why).with_rank(static_cast<int>(plan.rank));
}

/// The step for whose peer an operation waits; -1 if it waits for nobody.
int awaited_step(const Run& run) {
  const plan::Plan& plan = run.plan();
  const bool has_begun = run.waits.size() >= plan.steps.size() &&
                         (!run.cuts_through || run.paces.size() >= plan.steps.size());
  if (!has_begun) return -1;  // memory ran out on the way
  int awaited = -1;
  for (std::uint32_t i = 0; i < plan.steps.size(); ++i) {
    if (!run.is_posted(i)) continue;
    awaited = static_cast<int>(i);
    if (plan.steps[i].receives()) break;  // what was sent may lie in a buffer for long
  }
  return awaited;
}

Status too_late(const Run& run) {
  const plan::Plan& plan = run.plan();
  const int awaited = awaited_step(run);
  if (awaited < 0) {
    return Status(StatusCode::timeout, "the operation was not over in time")
        .with_rank(static_cast<int>(plan.rank));
  }
  const Step& step = plan.steps[static_cast<std::size_t>(awaited)];
  return Status(StatusCode::timeout,
                fmt::format("rank {} has not {} in time", step.peer,
                            step.sends() ? "taken what was sent to it" : "sent what it owes"))
      .with_rank(static_cast<int>(plan.rank))
      .with_peer(static_cast<int>(step.peer))
      .with_step(awaited)
      .with_hint("does that rank call the same operations in the same order?");
}

}  // namespace

Executor::Executor(Transport& transport, const ExecutorOptions& options)
    : transport_(transport),
      options_(options),
      slots_(options.segment_bytes),
      recorder_(options.recorder) {}

template <class Work>
void Executor::guarded(Group& group, const Work& work) noexcept {
  try {
    work();
  } catch (...) {
    fail_by_exception(group);
  }
}

void Executor::fail_by_exception(Group& group) noexcept {
  ready_.clear();  // steps of its run
  fail(group, status_of_exception());
}

/// So many runs, and groups that have finished one, are kept without further memory.
Run& Executor::take_run() {
  if (free_runs_.empty()) {
    free_runs_.reserve(runs_.size() + 1);
    free_groups_.reserve(runs_.size() + 1);
    runs_.push_back(std::make_unique<Run>(static_cast<std::uint32_t>(runs_.size())));
    return *runs_.back();
  }
  Run& run = *free_runs_.back();
  free_runs_.pop_back();
  return run;
}

void Executor::start(const Task& task) noexcept {
  Group& group = *task.group;
  task.work->begin();
  if (!group.failure.ok()) {
    recorder_.end(recorder_.begin(task, record::State::running), false);
    return task.work->finish(group.failure);
  }
  if (group.room == 0) return enqueue(task);
  begin(task);
  begin_next();
  flush();
}

void Executor::enqueue(const Task& task) noexcept {
  try {
    task.group->queue.push_back(task);
    task.group->queue.back().record = recorder_.begin(task, record::State::queued);
  } catch (...) {
    fail_by_exception(*task.group);
    task.work->finish(task.group->failure);
  }
}

void Executor::begin(const Task& task) noexcept {
  Group& group = *task.group;
  bool has_run = false;
  try {
    Run& run = take_run();
    has_run = true;
    --group.room;
    run.record = task.record;
    if (task.record == 0) {
      run.record = recorder_.begin(task, record::State::running);
    } else {
      recorder_.start(task.record);
    }
    run.begin(task, options_.segment_bytes);
    for (const std::uint32_t step : run.task.binding->program().first_steps(run.cuts_through)) {
      run.cuts_through ? ready_.push_back(step) : release(run, step);
    }
    drain(run);
    finish_if_over(run);
  } catch (...) {
    fail_by_exception(group);
    if (!has_run) {
      recorder_.end(task.record, false);
      task.work->finish(group.failure);
    }
  }
}

inline void Executor::begin_next() noexcept {
  while (!free_groups_.empty()) {
    Group& group = *free_groups_.back();
    free_groups_.pop_back();
    begin_next(group);
  }
}

void Executor::begin_next(Group& group) noexcept {
  const std::size_t others = free_groups_.size();
  while (group.queue_head < group.queue.size() && group.room > 0) {
    begin(group.queue[group.queue_head++]);
    free_groups_.resize(others);  // what has ended already is of this group
  }
  if (group.queue_head < group.queue.size()) return;
  group.queue.clear();
  group.queue_head = 0;
}

bool Executor::progress() noexcept {
  const std::size_t count = transport_.poll(completions_);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      complete(completions_[i]);
    } catch (...) {
      if (Group* const group = group_of(completions_[i])) fail_by_exception(*group);
    }
  }
  // Where nothing has come, but also beside a stream of others' messages.
  const bool has_time = count == 0 || ++busy_polls_ % busy_polls_max == 0;
  const bool has_local_work = has_time && !local_.empty();
  if (has_local_work) {
    const StepId id = local_.back();
    local_.pop_back();
    Run& run = *runs_[id.run];
    run.paces[id.step].is_queued = false;
    guarded(*run.task.group, [&] {
      advance(run, id.step);
      drain(run);
      finish_if_over(run);
    });
  }
  begin_next();
  const bool has_posted = flush();
  const bool has_moved = count > 0 || has_local_work || has_posted;
  if (has_moved) forget_time();
  return has_moved;
}

void Executor::attach(Group& group, Mailbox& mailbox) {
  const auto free = std::ranges::find(mailing_, nullptr);
  const auto number = static_cast<std::uint32_t>(free - mailing_.begin());
  if (free == mailing_.end()) mailing_.push_back(nullptr);
  mailing_[number] = &group;
  group.mailbox = &mailbox;
  mailbox.attach(Token{.run = Token::mail, .slot = number}.packed(), recorder_, group.record_id);
}

void Executor::open(Group& group, std::uint32_t peer, ChannelId letters, ChannelId payloads) {
  group.mailbox->open(peer, letters, payloads, outgoing_);
  flush();
}

void Executor::start(Group& group, const Parcel& parcel, Post post) noexcept {
  if (!group.failure.ok()) group.mailbox->fail(group.failure);
  guarded(group, [&] {
    const Status failure = group.mailbox->start(parcel, outgoing_);
    if (!failure.ok()) fail(group, failure);
  });
  const bool is_quiet = group.mailbox->active() == 0;  // so that nobody need come to post the rest
  if (post == Post::at_once || is_quiet || outgoing_.ops().size() >= posted_together) flush();
}

void Executor::detach(Group& group, const Status& why) noexcept {
  if (group.mailbox == nullptr) return;
  group.mailbox->fail(why);
  while (group.mailbox->is_posted()) progress();
  *std::ranges::find(mailing_, &group) = nullptr;
  group.mailbox = nullptr;
}

bool Executor::cuts_through() const noexcept {
  return std::ranges::any_of(
      runs_, [](const auto& run) { return run->task.group != nullptr && run->cuts_through; });
}

std::size_t Executor::active() const noexcept {
  std::size_t count = runs_.size() - free_runs_.size();
  for (const Group* const group : mailing_) {
    if (group != nullptr) count += group->mailbox->active();
  }
  return count;
}

void Executor::fail(Group& group, const Status& why) noexcept {
  if (!group.failure.ok()) return;
  group.failure = why;
  note_last_step(group);
  group.stays_open = tell_observer(group);
  if (!group.stays_open) close(group, why);
  for (const auto& run : runs_) {
    if (run->task.group != &group) continue;
    run->failure = why;
    drop_unposted(*run);
    finish_if_over(*run);
  }
  for (; group.queue_head < group.queue.size(); ++group.queue_head) {
    recorder_.end(group.queue[group.queue_head].record, false);
    group.queue[group.queue_head].work->finish(why);
  }
  if (group.mailbox != nullptr) group.mailbox->fail(why);
}

void Executor::end(Group& group, const Status& why) noexcept {
  fail(group, why);
  if (std::exchange(group.stays_open, false)) close(group, group.failure);
}

/// Of the operations of the group that are under way, if any: the one because of which it failed,
/// or else the oldest.
std::vector<std::unique_ptr<Run>>::const_iterator Executor::run_of(
    const Group& group) const noexcept {
  auto found = runs_.end();
  for (auto each = runs_.begin(); each != runs_.end(); ++each) {
    const Run& run = **each;
    if (run.task.group != &group || run.task.work == nullptr) continue;
    if (run.is_cause) return each;
    if (found == runs_.end() || run.index < (*found)->index) found = each;
  }
  return found;
}

/// Records the step whose message failed, or else the one that the operation was waiting in.
void Executor::note_last_step(const Group& group) noexcept {
  const auto run = run_of(group);
  if (run == runs_.end()) return;
  const int failed = (*run)->failed_step;
  note_wait(**run, failed >= 0 ? failed : awaited_step(**run));
}

/// Before anything of it has ended: so it can still be seen what it was doing. Returns what
/// on_failure() does.
bool Executor::tell_observer(const Group& group) const noexcept {
  if (group.observer == nullptr) return false;
  const auto run = run_of(group);
  const bool is_second_hand = is_told_by_peer(group.failure);
  if (run == runs_.end()) {
    const Parcel* const message =
        group.mailbox == nullptr ? nullptr : group.mailbox->any_under_way();
    return group.observer->on_failure(
        {.why = group.failure, .message = message, .is_second_hand = is_second_hand});
  }
  const int awaited = awaited_step(**run);
  const bool knows_step = group.failure.step() >= 0;
  const Status why = knows_step ? group.failure : Status(group.failure).with_step(awaited);
  const auto& steps = (*run)->plan().steps;
  return group.observer->on_failure(
      {.why = why,
       .tag = (*run)->tag,
       .number = (*run)->task.number,
       .awaited =
           awaited < 0 ? -1 : static_cast<int>(steps[static_cast<std::size_t>(awaited)].peer),
       .is_second_hand = is_second_hand,
       .index = (*run)->index,
       .meets_later_call = (*run)->is_cause && (*run)->meets_later_call});
}

void Executor::close(const Group& group, const Status& why) noexcept {
  has_ended_groups_ = true;
  const Status reason = group.in_world(why);
  for (const ChannelId channel : group.channels) transport_.close(channel, reason);
  if (group.lanes.first > group.lanes.last) return;
  transport_.close_lanes(group.lanes.first, group.lanes.last, reason);
}

void Executor::fail_all(const Status& why) noexcept {
  for (const auto& run : runs_) {
    if (run->task.group != nullptr) fail(*run->task.group, why);
  }
  for (Group* const group : mailing_) {
    if (group != nullptr) fail(*group, why);
  }
}

bool Executor::expire(Instant now) noexcept {
  const std::size_t before = active();
  for (const auto& run : runs_) {
    Group* const group = run->task.group;
    if (group == nullptr || !run->task.deadline.passed(now) || !run->failure.ok()) continue;
    guarded(*group, [&] {
      const Status late = too_late(*run);
      run->is_cause = true;
      run->failed_step = late.step();
      fail(*group, late);
    });
  }
  for (Group* const group : mailing_) {
    if (group == nullptr || !group->failure.ok()) continue;
    guarded(*group, [&] {
      if (const Status late = group->mailbox->expire(now); !late.ok()) fail(*group, late);
    });
  }
  return active() < before;
}

void Executor::note_wait(const Run& run, int step) noexcept {
  if (step < 0) return;
  const auto number = static_cast<std::uint32_t>(step);
  recorder_.note_wait(run.record, number, run.plan().steps[number].peer);
}

/// Of operations in which nothing has arrived since the last look. Less and less often: whom one
/// waits for may call something else later.
void Executor::look_for_stalls(Instant now) noexcept {
  if (now < next_look_) return;
  next_look_ = now + stall_pause_min;
  for (const auto& run : runs_) {
    Group* const group = run->task.group;
    if (group == nullptr || now < run->next_look) continue;
    const bool is_stalled = std::exchange(run->looked_at, run->completed) == run->completed;
    run->stall_pause =
        is_stalled ? std::min(2 * run->stall_pause, stall_pause_max) : stall_pause_min;
    run->next_look = now + run->stall_pause;
    const int awaited = awaited_step(*run);
    if (!is_stalled) recorder_.note_wait(run->record, 0, record::nobody);
    if (!is_stalled || awaited < 0 || !run->failure.ok()) continue;
    note_wait(*run, awaited);
    if (group->observer == nullptr) continue;
    const auto& step = run->plan().steps[static_cast<std::size_t>(awaited)];
    group->observer->on_stall({.index = run->index,
                               .tag = run->tag,
                               .number = run->task.number,
                               .step = static_cast<std::uint32_t>(awaited),
                               .awaited = step.peer,
                               .age = now - run->task.begun});
  }
}

Deadline Executor::next_look() const noexcept {
  Deadline first;
  for (const auto& run : runs_) {
    if (run->task.group == nullptr) continue;
    first = first.or_sooner(Deadline(std::max(run->next_look, next_look_)));
  }
  return first;
}

Deadline Executor::deadline() const noexcept {
  Deadline first;
  for (const auto& run : runs_) {
    if (run->task.group != nullptr && run->failure.ok())
      first = first.or_sooner(run->task.deadline);
  }
  for (const Group* const group : mailing_) {
    if (group != nullptr) first = first.or_sooner(group->mailbox->deadline());
  }
  return first;
}

void Executor::drop_unposted(Run& run) noexcept {
  std::erase_if(local_, [&](const StepId& each) { return each.run == run.number; });
  const auto drop = [&](const TransportOp& op) {
    const Token token = Token::unpacked(op.token);
    if (token.run != run.number) return false;
    if (token.slot != Token::no_slot) slots_.give_back(token.slot);
    --run.under_way;
    return true;
  };
  outgoing_.drop_if(drop);
  refused_.drop_if(drop);
}

inline void Executor::finish_if_over(Run& run) noexcept {
  if (run.steps_left == 0 || !run.failure.ok()) finish(run);
}

void Executor::finish(Run& run) noexcept {
  if (run.task.work == nullptr || run.under_way > 0) return;
  if (run.failure.ok()) run.finish();
  Work* const work = std::exchange(run.task.work, nullptr);
  Group* const group = std::exchange(run.task.group, nullptr);
  recorder_.end(run.record, run.failure.ok());
  group->end(run.index);
  if (group->failure.ok()) free_groups_.push_back(group);
  free_runs_.push_back(&run);
  work->finish(std::move(run.failure));
}

void Executor::drain(Run& run) {
  // By number: the list grows meanwhile.
  for (std::size_t i = 0; i < ready_.size(); ++i) advance(run, ready_[i]);
  ready_.clear();
}

inline void Executor::advance(Run& run, std::uint32_t step) {
  run.cuts_through ? advance_in_segments(run, step) : advance_whole(run, step);
}

/// A step of the rank itself, or a message of nothing, which is not sent.
void Executor::advance_whole(Run& run, std::uint32_t step) {
  const Instruction& it = run.code[step];
  if (!it.communicates()) {
    post_before_work(it.bytes);
    run.work_on(step, 0, it.bytes);
  } else if (count_down_next(run, it)) {
    release(run, it.next_on_port);
  }
  end_step(run, step);
}

void Executor::advance_in_segments(Run& run, std::uint32_t step) {
  Run::Pace& pace = run.paces[step];
  if (run.waits[step] > 0 || pace.is_queued) return;
  const Instruction& it = run.code[step];
  const std::uint64_t limit = run.limit_of(step);
  if (!it.communicates()) return work_on_segment(run, step, limit);
  if (it.bytes > 0 && pace.posted == it.bytes) return;  // what is left is the transport's
  while (pace.posted < it.bytes && pace.under_way < options_.segments_max) {
    const std::uint64_t segment = std::min(run.segment_bytes, it.bytes - pace.posted);
    if (pace.posted + segment > limit) return;
    post_message(run, step, pace.posted, segment);
    pace.posted += segment;
    ++pace.under_way;
  }
  if (pace.posted < it.bytes) return;
  if (count_down_next(run, it)) ready_.push_back(it.next_on_port);
  if (it.bytes == 0) end_segment(run, step, 0);
}

void Executor::work_on_segment(Run& run, std::uint32_t step, std::uint64_t limit) {
  Run::Pace& pace = run.paces[step];
  const std::uint64_t bytes = std::min(run.segment_bytes, limit - pace.done);
  post_before_work(bytes);
  run.work_on(step, pace.done, bytes);
  if (pace.done + bytes < limit) {
    pace.is_queued = true;
    local_.push_back({run.number, step});
  }
  if (bytes > 0 || run.code[step].bytes == 0) end_segment(run, step, bytes);
}

/// Of a step that waits for nothing any more, where none is cut. A message is posted at once, and
/// behind it those that only waited for that.
[[gnu::always_inline]] inline void Executor::release(Run& run, std::uint32_t step) {
  for (; run.code[step].is_message; step = run.code[step].next_on_port) {
    post_message(run, step, 0, run.code[step].bytes);
    if (!count_down_next(run, run.code[step])) return;
  }
  ready_.push_back(step);
}

/// Without memory for an op the slot goes back.
[[gnu::always_inline]] inline TransportOp& Executor::add_for_slot(std::uint32_t slot) {
  try {
    return outgoing_.add();
  } catch (const std::bad_alloc&) {
    slots_.give_back(slot);
    throw;
  }
}

[[gnu::always_inline]] inline void Executor::receive_in_slot(Run& run, std::uint32_t step,
                                                             std::uint64_t bytes) {
  const Token token{.run = run.number, .step = step, .slot = slots_.take()};
  TransportOp& op = add_for_slot(token.slot);
  ++run.under_way;
  op.kind = TransportOp::Kind::recv;
  op.channel = run.code[step].channel;
  op.may_lend = true;
  op.first = {slots_.memory(token.slot), bytes};
  op.token = token.packed();
  op.tag = run.tag;
}

[[gnu::always_inline]] inline void Executor::post_message(Run& run, std::uint32_t step,
                                                          std::uint64_t begin,
                                                          std::uint64_t bytes) {
  const Instruction& it = run.code[step];
  if (it.kind == StepKind::recv_reduce) return receive_in_slot(run, step, bytes);
  TransportOp& op = outgoing_.add();
  ++run.under_way;
  op.kind = it.kind == StepKind::send ? TransportOp::Kind::send : TransportOp::Kind::recv;
  op.channel = it.channel;
  run.fill_parts(op, step, begin, bytes);
  op.token = Token{.run = run.number, .step = step}.packed();
  op.tag = run.tag;
}

/// A step was posted, so that the next one on its port does not wait for that any more: whether it
/// waits for nothing else.
inline bool Executor::count_down_next(Run& run, const Instruction& it) {
  return it.next_on_port != none && --run.waits[it.next_on_port] == 0;
}

/// Of a step of an operation that is cut.
void Executor::end_segment(Run& run, std::uint32_t step, std::uint64_t bytes) {
  Run::Pace& pace = run.paces[step];
  const Instruction& it = run.code[step];
  pace.done += bytes;
  const bool is_over = pace.done == it.bytes;
  if (is_over) {
    run.end(step);
  } else if (it.communicates()) {
    ready_.push_back(step);
  }
  for (const Follower& follower : run.followers(it)) {
    if (follower.is_abreast || (is_over && --run.waits[follower.step] == 0)) {
      ready_.push_back(follower.step);
    }
  }
}

/// Of one that is not.
inline void Executor::end_step(Run& run, std::uint32_t step) {
  run.end(step);
  if (run.code[step].follower_count > 0) let_followers_go(run, step);
}

void Executor::let_followers_go(Run& run, std::uint32_t step) {
  for (const Follower& follower : run.followers(run.code[step])) {
    if (--run.waits[follower.step] == 0) release(run, follower.step);
  }
}

Group* Executor::group_of(const TransportCompletion& completion) const noexcept {
  const Token token = Token::unpacked(completion.token);
  return token.run == Token::mail ? mailing_[token.slot] : runs_[token.run]->task.group;
}

/// A message that is to be reduced: its memory goes back, also when the op throws.
class Executor::Arrival {
 public:
  Arrival(Executor& executor, std::uint32_t slot, const TransportCompletion& completion) noexcept
      : executor_(executor), slot_(slot), completion_(completion) {}
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;
  ~Arrival() { executor_.give_back(slot_, completion_); }

  [[nodiscard]] const std::byte* memory() const noexcept {
    return executor_.arrived_in(slot_, completion_);
  }

 private:
  Executor& executor_;
  const std::uint32_t slot_;
  const TransportCompletion& completion_;
};

void Executor::complete_mail(TransportCompletion& completion) {
  const Token token = Token::unpacked(completion.token);
  Group& group = *mailing_[token.slot];
  if (!completion.status.ok()) {
    const std::uint32_t peer = group.mailbox->peer_of(token.step);
    completion.status = group.in_group(std::move(completion.status), group.mailbox->rank(), peer);
    // Another rank has failed. One that is only gone leaves the others to go on.
    const bool is_gone = completion.status.code() == StatusCode::peer_lost;
    if (!is_gone && group.observer != nullptr) fail(group, completion.status);
  }
  const Status failure = group.mailbox->complete(token.step, completion, outgoing_);
  if (!failure.ok()) return fail(group, failure);
  if (group.failure.ok()) group.accused = -1;  // it goes on without that peer
}

[[gnu::always_inline]] inline void Executor::complete(TransportCompletion& completion) {
  const Token token = Token::unpacked(completion.token);
  if (token.run == Token::mail) return complete_mail(completion);
  Run& run = *runs_[token.run];
  if (run.cuts_through || !run.failure.ok() || !completion.status.ok() ||
      completion.bytes != run.code[token.step].bytes || completion.tag != run.tag) {
    return complete_in_full(run, completion);
  }
  --run.under_way;
  ++run.completed;
  if (token.slot != Token::no_slot) {
    const Arrival arrival(*this, token.slot, completion);
    run.reduce_message(token.step, 0, completion.bytes, arrival.memory());
  }
  end_step(run, token.step);
  if (!ready_.empty()) drain(run);
  if (run.steps_left == 0) finish(run);
}

void Executor::give_back(std::uint32_t slot, const TransportCompletion& completion) noexcept {
  if (completion.lent != nullptr) transport_.give_back(completion.lent);
  slots_.give_back(slot);
}

/// Of segments, of wrong lengths and failures.
void Executor::complete_in_full(Run& run, TransportCompletion& completion) {
  const Token token = Token::unpacked(completion.token);
  const Instruction& it = run.code[token.step];
  --run.under_way;
  ++run.completed;
  if (!run.has_arrived && it.kind != StepKind::send && completion.status.ok()) {
    run.has_arrived = true;
    recorder_.note_arrival(run.record);
  }
  std::uint64_t begin = 0;
  std::uint64_t expected = it.bytes;
  if (run.cuts_through) {
    Run::Pace& pace = run.paces[token.step];
    --pace.under_way;
    begin = pace.done;
    expected = std::min(run.segment_bytes, it.bytes - begin);
  }
  const bool is_right =
      completion.status.ok() && completion.bytes == expected && completion.tag == run.tag;
  const bool goes_on = is_right && run.failure.ok();
  if (token.slot != Token::no_slot) {
    const Arrival arrival(*this, token.slot, completion);
    if (goes_on) run.reduce_message(token.step, begin, expected, arrival.memory());
  }
  if (goes_on) {
    end_segment(run, token.step, expected);
    drain(run);
  } else if (run.failure.ok()) {
    run.is_cause = true;
    run.failed_step = static_cast<int>(token.step);
    run.meets_later_call = is_of_later_call(run, completion);
    // May end this run and others, so that nothing of them is touched behind it.
    return fail(*run.task.group, failure_of(run, token.step, expected, completion));
  }
  finish_if_over(run);
}

/// Others wait for what is to be sent, and nobody for our own work.
void Executor::post_before_work(std::uint64_t bytes) noexcept {
  if (bytes >= long_work_bytes) flush();
}

bool Executor::flush() noexcept {
  bool has_posted = false;
  while (!outgoing_.ops().empty()) {
    const std::size_t taken = transport_.post(outgoing_.ops());
    has_posted |= taken > 0;
    if (taken == outgoing_.ops().size()) {
      outgoing_.clear();
      break;
    }
    outgoing_.drop_first(taken);
    if (!refuse_first()) return has_posted;
  }
  if (!refused_.ops().empty()) outgoing_.swap(refused_);
  return has_posted;
}

/// There is no room for the first: its channel must wait, and the others go on. False when there is
/// no memory for that, so that all wait.
bool Executor::refuse_first() noexcept {
  try {
    refused_.reserve(refused_.ops().size() + outgoing_.ops().size());
  } catch (const std::bad_alloc&) {
    return false;
  }
  const ChannelId full = outgoing_.ops()[0].channel;
  outgoing_.drop_if([&](const TransportOp& op) {
    if (op.channel != full) return false;
    refused_.add() = op;
    return true;
  });
  return true;
}

}  // namespace hocket::engine
