#include "comm/group_core.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "comm/mail.hpp"

namespace hocket::comm {
namespace {

// Beside those of plans.
constexpr std::uint64_t letter_lane = 254;
constexpr std::uint64_t payload_lane = 255;
static_assert(std::uint64_t{limits::overlap_max} * limits::plan_lanes_max <= letter_lane);

}  // namespace

GroupCore::GroupCore(std::shared_ptr<Context> context, Membership members, Duration timeout,
                     std::uint32_t overlap)
    : context_(std::move(context)), members_(std::move(members)), timeout_(timeout) {
  group_.lanes = Membership::lanes_of(members_.id());
  group_.overlap = group_.room = overlap;
  group_.record_id = members_.unique_id();
  group_.members = members_.members();
  if (context_->recorder != nullptr)
    context_->recorder->add_group(group_.record_id, position().rank, position().size);
  if (context_->monitor == nullptr) return;
  group_.observer = this;
  watched_ = std::make_unique<health::WatchedGroup>();
  watched_->id = members_.unique_id();
  watched_->members = members_.members();
  watched_->fail = [this](const Status& why) { engine().abort(group_, members_.in_group(why)); };
  watched_->compare = [this](const health::Question& question) {
    if (!group_.calls.have_begun(question.index)) warn_that_others_wait(question);
    return compare(group_.calls.at(question.index), question);
  };
  context_->monitor->add(*watched_);
}

GroupCore::~GroupCore() {
  if (watched_ != nullptr) context_->monitor->remove(*watched_);
  engine().close(group_);
  if (context_->recorder != nullptr) context_->recorder->remove_group(group_.record_id);
}

Status GroupCore::fail_by_exception(std::string_view operation) noexcept {
  Status why = status_of_exception();
  engine().fail(group_, why);
  try {
    return Status(why)
        .with_rank(static_cast<int>(position().rank))
        .with_operation(std::string(operation));
  } catch (...) {
    return why;
  }
}

Status GroupCore::failure(const Status& why, std::string_view what,
                          std::string_view operation) const {
  return Status(why.code(),
                fmt::format("{} failed on rank {} of {}", what, position().rank, position().size))
      .with_rank(static_cast<int>(position().rank))
      .with_peer(why.peer())
      .with_step(why.step())
      .with_operation(std::string(operation))
      .caused_by(why);
}

Status GroupCore::failure_before(std::string_view operation, const Status& why) const noexcept {
  return failure(cause_of(why), [&] { return std::pair(operation, operation); })
      .with_step(-1);  // that of the cause is of another operation
}

Result<ChannelId> GroupCore::open(const engine::Port& port, std::uint32_t bank) {
  const std::uint64_t lane = std::uint64_t{bank} * limits::plan_lanes_max + port.lane;
  const std::uint64_t key = std::uint64_t{port.peer} << Membership::lane_bits | lane;
  if (const auto found = channels_.find(key); found != channels_.end()) return found->second;
  auto channel = engine().open(group_, members_.in_world(port.peer), members_.lane(lane));
  if (channel.ok()) channels_.emplace(key, *channel);
  return channel;
}

Status GroupCore::open_mail(std::uint32_t peer) {
  if (mailbox_ == nullptr) {
    auto mailbox = std::make_unique<engine::Mailbox>(position().rank, position().size);
    engine().attach(group_, *mailbox);
    mailbox_ = std::move(mailbox);
  }
  if (mailbox_->is_open(peer)) return {};
  return engine().open_mail(group_, peer, members_.in_world(peer), members_.lane(letter_lane),
                            members_.lane(payload_lane));
}

Status GroupCore::open_watch() {
  constexpr std::uint32_t few = 64;
  return guarded("watch", [&]() -> Status {
    const auto held = lock();
    for (std::uint32_t distance = 1; distance < position().size;) {
      for (const std::uint32_t each : {distance, position().size - distance}) {
        Status status = open_mail((position().rank + each) % position().size);
        if (!status.ok()) return status;
      }
      distance = position().size <= few ? distance + 1 : distance * 2;
    }
    return {};
  });
}

/// Under the engine's lock.
bool GroupCore::on_failure(const engine::Failure& failure) noexcept {
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
  // First, so that the answer is there when all choose what to say.
  if (failure.meets_later_call && failure.why.peer() >= 0) {
    ask({.to = members_.in_world(static_cast<std::uint32_t>(failure.why.peer())),
         .communicator = members_.unique_id(),
         .index = failure.index,
         .tag = failure.tag});
  }
  // If this process were stopped with its channels closed and the others not told, none of them
  // could name the two calls.
  const bool ends_when_told = why.code() == StatusCode::mismatch && !failure.is_second_hand;
  context_->monitor->report(*watched_,
                            {.why = why,
                             .operation = std::move(operation),
                             .awaited = awaited,
                             .is_second_hand = failure.is_second_hand || failure.meets_later_call,
                             .ends_when_told = ends_when_told});
  return ends_when_told;
}

/// Also about the calls before it, the oldest first: that is the one that differs, and what is
/// answered first counts.
void GroupCore::ask(const health::Question& question) noexcept {
  constexpr std::uint64_t asked_before = 7;
  for (std::uint64_t back = std::min(asked_before, question.index); back > 0; --back) {
    const std::uint64_t index = question.index - back;
    const auto tag = group_.calls.at(index);
    if (!tag) continue;
    context_->monitor->ask(
        {.to = question.to, .communicator = question.communicator, .index = index, .tag = *tag});
  }
  context_->monitor->ask(question);
}

/// Under the engine's lock.
Status GroupCore::in_world(const engine::Failure& failure) const {
  Status why = group_.in_world(failure.why);
  return failure.is_second_hand ? why : with_size(std::move(why));
}

/// Texts of the engine name ranks of the group, those of a transport name ranks of the world.
Status GroupCore::with_size(Status why) const {
  const bool is_of_engine = why.code() == StatusCode::mismatch || why.code() == StatusCode::timeout;
  if (!is_of_engine || members_.is_of_world()) return why;
  const std::string sized =
      fmt::format("{} (ranks of a communicator of {})", why.what(), position().size);
  if (why.what().ends_with(sized.substr(why.what().size()))) return why;  // it says so already
  return Status(why.code(), sized)
      .with_peer(why.peer())
      .with_step(why.step())
      .with_hint(std::string(why.hint()));
}

/// Under the engine's lock.
void GroupCore::on_stall(const engine::Stall& stall) noexcept {
  ask({.to = members_.in_world(stall.awaited),
       .communicator = members_.unique_id(),
       .index = stall.index,
       .tag = stall.tag,
       .number = stall.number,
       .age = stall.age});
  const Duration limit = context_->stall_warning;
  std::uint64_t& warned_of = warned_of_.at(stall.index % group_.overlap);
  if (limit <= Duration::zero() || stall.age < limit || warned_of == stall.number) return;
  warned_of = stall.number;
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

/// Called on the monitor's thread.
void GroupCore::warn_that_others_wait(const health::Question& question) {
  const Duration limit = context_->stall_warning;
  if (limit <= Duration::zero() || question.age < limit || question.index < said_late_) return;
  said_late_ = question.index + 1;
  context_->monitor->warn(fmt::format(
      "rank {}: rank {} called {} #{} {} ago and waits for this rank, which has not begun it",
      context_->world.rank, question.from, engine::describe_call(question.tag), question.number,
      format_duration(std::chrono::round<std::chrono::milliseconds>(question.age))));
}

/// Called on the monitor's thread. Two ranks that called different operations may wait for each
/// other without exchanging a message: this is how they find out.
Status GroupCore::compare(std::optional<std::uint64_t> ours,
                          const health::Question& question) const {
  const auto peer = members_.rank_of(question.from);
  if (!ours || *ours == question.tag || !peer) return {};
  const Status why = engine::disagreement(*ours, question.tag, position().rank, *peer);
  return with_size(Status(why).with_peer(static_cast<int>(question.from)));
}

Status GroupCore::cause_of(const Status& why, bool expects_failure) const noexcept {
  Status cause = why;
  if (watched_ != nullptr && !health::is_local_failure(why.code())) {
    Status found = context_->monitor->cause_of(*watched_, expects_failure);
    if (!found.ok()) cause = members_.in_group(std::move(found));
  }
  const bool has_failed = !engine().failure_of(group_).ok();  // else it goes on
  if (has_failed && context_->recorder != nullptr) {
    context_->recorder->note_failure(cause.what());
  }
  return cause;
}

void GroupCore::mention(std::uint32_t peer, std::string operation) const noexcept {
  if (watched_ == nullptr) return;
  context_->monitor->mention(members_.in_world(peer), std::move(operation));
}

void GroupCore::abort(std::string_view reason) noexcept {
  const Status why = described([&] {
    return Status(StatusCode::aborted,
                  reason.empty() ? "the communicator was aborted"
                                 : fmt::format("the communicator was aborted: {}", reason))
        .with_rank(static_cast<int>(position().rank));
  });
  // First, so that those who wait here need not find out what happened.
  if (watched_ != nullptr) context_->monitor->conclude(*watched_, why);
  engine().abort(group_, why);
}

}  // namespace hocket::comm
