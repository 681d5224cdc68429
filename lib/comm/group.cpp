#include "comm/group.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/exception.hpp"
#include "base/text.hpp"
#include "comm/device.hpp"
#include "comm/roll_call.hpp"

namespace hocket::comm {
namespace {

/// Ranks of one host have numbers in a row in the world; only there do plans know hosts.
std::uint32_t ranks_per_host(const Context& context, std::size_t members) {
  const bool is_world = members == static_cast<std::size_t>(context.world.size);
  return is_world ? context.ranks_per_host : 1;
}

}  // namespace

Group::Group(std::shared_ptr<Context> context, Membership members, Duration timeout)
    : context_(std::move(context)),
      members_(std::move(members)),
      timeout_(timeout),
      planner_(place(), ranks_per_host(*context_, place().size), context_->selector,
               [this](const engine::Port& port) { return open(port); }) {
  group_.lanes = Membership::lanes_of(members_.id());
  group_.record_id = members_.record_id();
  group_.members = members_.members();
  if (context_->recorder != nullptr)
    context_->recorder->add_group(group_.record_id, place().rank, place().size);
  if (context_->monitor == nullptr) return;
  group_.observer = this;
  watched_ = std::make_unique<health::WatchedGroup>();
  watched_->id = members_.id();
  watched_->members = members_.members();
  watched_->fail = [this](const Status& why) { engine().abort(group_, members_.in_group(why)); };
  watched_->compare = [this](const health::Question& question) { compare(question); };
  context_->monitor->add(*watched_);
}

Group::~Group() {
  devices_ = nullptr;
  if (watched_ != nullptr) context_->monitor->remove(*watched_);
  engine().close(group_);
  if (context_->recorder != nullptr) context_->recorder->remove_group(group_.record_id);
}

Status Group::inherited() { return inherited_status("a communicator"); }

Status Group::fail_by_exception(std::string_view operation) noexcept {
  const Status why = status_of_exception();
  engine().fail(group_, why);
  return explained(why, [&] {
    return Status(why)
        .with_rank(static_cast<int>(place().rank))
        .with_operation(std::string(operation));
  });
}

Result<ChannelId> Group::open(const engine::Port& port) {
  const std::uint64_t key = std::uint64_t{port.peer} << Membership::lane_bits | port.lane;
  if (const auto found = channels_.find(key); found != channels_.end()) return found->second;
  auto channel = engine().open(group_, members_.in_world(port.peer), members_.lane(port.lane));
  if (channel.ok()) channels_.emplace(key, *channel);
  return channel;
}

Status Group::set_up(const Collective& collective, Operation& operation) {
  return guarded(collective.kind, [&] { return plan(collective, operation); });
}

Status Group::plan(const Collective& collective, Operation& operation) {
  const auto refused = [&](Status why) {
    return std::move(why).with_operation(std::string(name(collective.kind)));
  };
  if (Status status = comm::check(collective, place()); !status.ok()) return refused(status);
  auto plan = planner_.find(collective);
  if (!plan.ok()) return refused(cause_of(plan.status()));
  operation.plan = std::move(*plan);
  const bool is_barrier = collective.kind == CollectiveKind::barrier;
  operation.task = {
      .binding = operation.plan->binding.get(),
      .in = is_barrier ? &token_[0] : static_cast<const std::byte*>(collective.in),
      .out = is_barrier ? &token_[1] : static_cast<std::byte*>(collective.out),
      .pieces = collective.pieces,
      .tag = is_barrier ? operation.plan->tag : operation.plan->tag.with(collective.type),
      .group = &group_,
  };
  if (!is_barrier && !plan::reduces(operation.plan->signature.operation)) return {};
  auto reduction = is_barrier
                       ? reduce::Reduction::make({.type = DataType::u8, .op = ReduceOp::bit_or})
                       : make_reduction(collective, place().size);
  if (!reduction.ok()) return refused(reduction.status());
  operation.task.reduction = *reduction;
  if (!is_barrier) operation.task.tag = operation.task.tag.with(collective.reduction.op);
  return {};
}

void Group::number(const Collective& collective, Operation& operation) {
  operation.number = ++operations_;
  operation.task.number = operation.number;
  operation.task.begun = monotonic_clock().now();
  operation.task.deadline = deadline_of(collective.options, operation.task.begun);
}

Deadline Group::deadline_of(const Options& options, Instant now) const {
  return Deadline::after(now, options.timeout.value_or(timeout_));
}

Status Group::run(const Collective& collective) {
  const auto device = device_of(collective);
  if (!device.ok()) return device.status();
  if (*device >= 0) return run_on_device(collective, *device);
  Operation operation;
  if (Status status = set_up(collective, operation); !status.ok()) return status;
  return run(collective, operation);
}

Status Group::run(const Collective& collective, Operation& operation) {
  number(collective, operation);
  engine::Work work;
  work.call_at_end(collective.options.on_end, collective.options.on_end_context);
  operation.task.work = &work;
  engine().start(operation.task);
  engine().wait(work);
  operation.task.work = nullptr;  // it ends with this call
  return work.status().ok() ? Status() : explain(operation, work.status());
}

/// Under the engine's lock.
void Group::on_failure(const engine::Failure& failure) noexcept {
  std::string operation;
  Status why = failure.why;
  static_cast<void>(described([&] {
    why = in_world(failure);
    if (failure.tag != 0) operation = engine::describe_call(failure.tag);
    if (failure.message != nullptr) operation = describe(*failure.message);
    if (failure.number != 0) operation += fmt::format(" #{}", failure.number);
    return Status();
  }));
  const int awaited =
      failure.awaited < 0
          ? -1
          : static_cast<int>(members_.in_world(static_cast<std::uint32_t>(failure.awaited)));
  context_->monitor->report(*watched_, {.why = why,
                                        .operation = std::move(operation),
                                        .awaited = awaited,
                                        .is_second_hand = failure.is_second_hand});
}

/// The engine's words name ranks of the group, a transport's those of the world.
Status Group::in_world(const engine::Failure& failure) const {
  Status why = group_.in_world(failure.why);
  const bool is_of_engine = !failure.is_second_hand && (why.code() == StatusCode::mismatch ||
                                                        why.code() == StatusCode::timeout);
  if (!is_of_engine || members_.is_of_world()) return why;
  return Status(why.code(),
                fmt::format("{} (ranks of a communicator of {})", why.what(), place().size))
      .with_peer(why.peer())
      .with_step(why.step())
      .with_hint(std::string(why.hint()));
}

/// Under the engine's lock.
void Group::on_stall(const engine::Stall& stall) noexcept {
  context_->monitor->ask({.to = members_.in_world(stall.awaited),
                          .communicator = members_.id(),
                          .index = stall.index,
                          .tag = stall.tag});
  const Duration limit = context_->stall_warning;
  if (limit <= Duration::zero() || stall.age < limit || warned_of_ == stall.number) return;
  warned_of_ = stall.number;
  static_cast<void>(described([&] {
    context_->monitor->warn(fmt::format(
        "rank {}: {} #{} has waited for rank {}{} in step {}, {} after it was called; "
        "`hocket trace` "
        "on the ranks' hosts shows what they do",
        context_->world.rank, engine::describe_call(stall.tag), stall.number,
        members_.in_world(stall.awaited), members_.is_of_world() ? "" : " of the world", stall.step,
        format_duration(std::chrono::round<std::chrono::milliseconds>(stall.age))));
    return Status();
  }));
}

/// On the monitor's thread. Ranks that only wait for each other find out so that they called
/// different operations: no message between them tells.
void Group::compare(const health::Question& question) {
  const auto ours = group_.calls.at(question.index);
  const auto peer = members_.rank_of(question.from);
  if (!ours || *ours == question.tag || !peer) return;
  engine().abort(group_, engine::disagreement(*ours, question.tag, place().rank, *peer));
}

Status Group::cause_of(const Status& why, bool expects_failure) const noexcept {
  Status cause = why;
  if (watched_ != nullptr && !health::is_local_failure(why.code())) {
    Status found = context_->monitor->cause_of(*watched_, expects_failure);
    if (!found.ok()) cause = members_.in_group(std::move(found));
  }
  const bool has_failed = !context_->engine->failure_of(group_).ok();  // else it goes on
  if (has_failed && context_->recorder != nullptr) {
    context_->recorder->note_failure(cause.what());
  }
  return cause;
}

Status Group::explain(const Operation& operation, const Status& first) const noexcept {
  const Status why = cause_of(first);
  return explained(why, [&] {
    const std::string_view kind = plan::name(operation.plan->signature.operation);
    return Status(why.code(),
                  fmt::format("{} by {} failed on rank {} of {}", kind,
                              operation.plan->choice.algorithm->name, place().rank, place().size))
        .with_rank(static_cast<int>(place().rank))
        .with_peer(why.peer())
        .with_step(why.step())
        .with_operation(fmt::format("{} #{}", kind, operation.number))
        .caused_by(why);
  });
}

void Group::abort(std::string_view reason) noexcept {
  const Status why = described([&] {
    return Status(StatusCode::aborted,
                  reason.empty() ? "the communicator was aborted"
                                 : fmt::format("the communicator was aborted: {}", reason))
        .with_rank(static_cast<int>(place().rank));
  });
  // First, so that those who wait here need not find out what happened.
  if (watched_ != nullptr) context_->monitor->conclude(*watched_, why);
  engine().abort(group_, why);
}

Status Group::monitored_barrier(std::optional<Duration> timeout) {
  constexpr std::string_view name = "monitored_barrier";
  if (Status status = comm::check(Options{.timeout = timeout}); !status.ok()) {
    return std::move(status).with_operation(std::string(name));
  }
  const std::uint64_t number = ++monitored_barriers_;
  Status status = engine().failure_of(group_);
  if (status.ok()) status = described([&] { return meet(number, timeout.value_or(timeout_)); });
  if (status.ok()) return status;
  // What other ranks did is the communicator's cause, if it has failed.
  const Status why = cause_of(status, status.code() == StatusCode::peer_lost);
  return explained(why, [&] {
    return Status(why.code(),
                  fmt::format("{} failed on rank {} of {}", name, place().rank, place().size))
        .with_rank(static_cast<int>(place().rank))
        .with_peer(why.peer())
        .with_operation(fmt::format("{} #{}", name, number))
        .caused_by(why);
  });
}

Status Group::meet(std::uint64_t number, Duration timeout) {
  const auto name_of = [&](int rank) {
    return fmt::format("rank {} ({})", rank,
                       context_->processes[members_.in_world(static_cast<std::uint32_t>(rank))]);
  };
  const auto list = [&](std::span<const int> ranks) {
    constexpr std::size_t named_max = 8;
    std::string text;
    for (const int rank : ranks.first(std::min(ranks.size(), named_max))) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(rank));
    }
    return ranks.size() > named_max ? text + ", …" : text;
  };
  return call_roll({.store = *context_->world.store,
                    .keys = fmt::format("roll/{:x}/{}/", group_.record_id, number),
                    .place = place(),
                    .timeout = timeout,
                    .list = list,
                    .loss = [&] { return engine().failure_of(group_); }});
}

Result<std::shared_ptr<Group>> Group::split(int color, int key) {
  return guarded("split", [&] { return divide(color, key); });
}

Result<std::shared_ptr<Group>> Group::divide(int color, int key) {
  struct Wish {
    std::int64_t color;
    std::int64_t key;
    std::int64_t id;
  };
  Wish ours{color, key, 0};
  Status no_id(StatusCode::system_error, "rank 0 got no number for it from the store");
  if (place().rank == 0) {
    const auto id = context_->world.store->add("communicators", 1);
    no_id = id.status();
    ours.id = id.ok() ? *id : -1;
  }
  std::vector<Wish> wishes(place().size);
  Status status = run({.kind = CollectiveKind::all_gather,
                       .in = &ours,
                       .out = wishes.data(),
                       .type = DataType::u8,
                       .count = sizeof ours});
  if (!status.ok()) return status;
  if (wishes[0].id < 0) return no_id;
  const auto id = static_cast<std::uint64_t>(wishes[0].id);
  if (color < 0) {
    engine().close_lanes(Membership::lanes_of(id));
    status = split_devices(color, key, nullptr);
    if (!status.ok()) return status;
    return std::shared_ptr<Group>();
  }
  const auto make_part = [&]() -> Result<std::shared_ptr<Group>> {
    std::vector<std::uint32_t> chosen;  // ranks of this communicator
    for (std::uint32_t i = 0; i < place().size; ++i) {
      if (wishes[i].color == color) chosen.push_back(i);
    }
    std::ranges::stable_sort(chosen, {}, [&](std::uint32_t i) { return wishes[i].key; });
    const auto own =
        static_cast<std::uint32_t>(std::ranges::find(chosen, place().rank) - chosen.begin());
    auto part = make_group(context_, members_.part(id, chosen, own), timeout_);
    if (Status failure = split_devices(color, key, part.get()); !failure.ok()) return failure;
    return part;
  };
  try {
    return make_part();
  } catch (...) {
    engine().close_lanes(Membership::lanes_of(id));  // the others may wait for this rank there
    throw;
  }
}

}  // namespace hocket::comm
