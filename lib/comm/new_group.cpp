#include "comm/new_group.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "comm/context.hpp"
#include "health/watched_groups.hpp"
#include "wire/sha256.hpp"
#include "world/roll_call.hpp"

namespace hocket::comm {
namespace {

/// Short, however many ranks there are.
std::string digest_of(std::span<const std::uint32_t> ranks) {
  const wire::Digest digest = wire::sha256(joined(ranks, ","));
  return hex(std::span(digest).first(8));
}

/// Notices if a member is lost before the communicator exists.
class MembersWatch {
 public:
  /// `members`: ranks of the world.
  MembersWatch(health::Monitor* monitor, std::span<const std::uint32_t> members)
      : monitor_(monitor) {
    if (monitor_ == nullptr) return;
    watched_.id = id_of_none;
    watched_.members = members;
    watched_.fail = [this](const Status& why) {
      const std::lock_guard lock(mutex_);
      loss_ = why;
    };
    watched_.compare = [](const health::Question&) { return Status(); };
    monitor_->add(watched_);
  }
  MembersWatch(const MembersWatch&) = delete;
  MembersWatch& operator=(const MembersWatch&) = delete;
  ~MembersWatch() {
    if (monitor_ != nullptr) monitor_->remove(watched_);
  }

  [[nodiscard]] Status loss() {
    const std::lock_guard lock(mutex_);
    return loss_;
  }
  /// The same as all other members are told, if a member is lost; else `why`. May wait a moment.
  [[nodiscard]] Status cause_of(const Status& why) noexcept {
    if (monitor_ == nullptr || health::is_local_failure(why.code())) return why;
    Status found = monitor_->cause_of(watched_, why.code() == StatusCode::peer_lost);
    return found.ok() ? why : found;
  }

 private:
  static constexpr std::uint64_t id_of_none = UINT64_MAX;

  health::Monitor* const monitor_;
  health::WatchedGroup watched_;
  std::mutex mutex_;
  Status loss_;
};

}  // namespace

Result<std::uint64_t> take_id(store::Store& store, std::optional<Duration> timeout) {
  const auto count = store.add("communicators", 1, timeout);
  if (!count.ok()) return count.status();
  if (*count > 0 && static_cast<std::uint64_t>(*count) <= Membership::id_max) {
    return static_cast<std::uint64_t>(*count);
  }
  return Status(
             StatusCode::limit_exceeded,
             fmt::format("{} is not an id of a communicator (1 to {})", *count, Membership::id_max))
      .with_hint("does something else write to the world's keys in the store? Or start anew");
}

std::uint64_t CallCounter::next(const std::string& call) {
  const std::lock_guard lock(mutex_);
  return ++counts_[call];
}

Result<std::uint64_t> number_new_group(const NewGroup& group) {
  Context& context = group.context;
  std::vector<std::uint32_t> members;  // of the world, sorted: the order may be disputed
  for (const std::uint32_t rank : group.ranks) members.push_back(group.parent.in_world(rank));
  if (members.size() == 1) return take_id(*context.world.store, group.timeout);
  const std::string order = digest_of(members);
  std::ranges::sort(members);
  const auto own = std::ranges::find(members, static_cast<std::uint32_t>(context.world.rank));
  const std::string call =
      fmt::format("group/{:x}/{}/{}", group.parent.id(), group.name, digest_of(members));
  const auto rank_of = [&](int place) {
    return static_cast<int>(*group.parent.rank_of(members[static_cast<std::size_t>(place)]));
  };
  MembersWatch watch(context.monitor.get(), members);
  const auto granted = world::call_roll(
      {.store = *context.world.store,
       .keys = fmt::format("{}/{}/", call, context.group_calls.next(call)),
       .rank = static_cast<std::uint32_t>(own - members.begin()),
       .size = static_cast<std::uint32_t>(members.size()),
       .timeout = group.timeout,
       .is_binding = true,
       .card = order,
       .disagreement = "have named the ranks of the new communicator in different orders",
       .grant = [&](Duration patience) -> Result<std::string> {
         const auto number = take_id(*context.world.store, patience);
         return number.ok() ? std::to_string(*number) : Result<std::string>(number.status());
       },
       .list =
           [&](std::span<const int> places) {
             std::vector<int> ranks;
             for (const int place : places) ranks.push_back(rank_of(place));
             return list_ranks(context, group.parent, ranks);
           },
       .loss = [&] { return watch.loss(); }});
  if (granted.ok()) {
    const auto number = parse_integer(*granted);
    if (number && *number > 0) return static_cast<std::uint64_t>(*number);
    return Status(StatusCode::protocol_error,
                  fmt::format("{} is no number of a communicator", quote(*granted)));
  }
  const Status& why = granted.status();
  if (why.code() == StatusCode::timeout && why.peer() >= 0) {
    return Status(why)
        .with_peer(rank_of(why.peer()))
        .with_hint(
            "check whether the named ranks call group() with the same ranks and name; then "
            "call it again on all of these ranks");
  }
  if (why.code() == StatusCode::mismatch && why.peer() >= 0) {
    return Status(why).with_peer(rank_of(why.peer())).with_hint("give all members one order");
  }
  if (why.code() == StatusCode::aborted && why.peer() >= 0) {
    return Status(why).with_peer(rank_of(why.peer()));
  }
  return group.parent.in_group(watch.cause_of(why));
}

}  // namespace hocket::comm
