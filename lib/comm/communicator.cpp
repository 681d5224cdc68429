#include "hocket/communicator.hpp"

#include <utility>

#include "base/config.hpp"
#include "base/exception.hpp"
#include "bridge/built_in_store.hpp"
#include "comm/context.hpp"
#include "comm/group.hpp"
#include "comm/kinds.hpp"
#include "health/monitor.hpp"

namespace hocket::inline v1 {

std::string_view name(CollectiveKind kind) noexcept {
  return comm::is_known(kind) ? plan::name(comm::operation_of(kind)) : "unknown";
}

Communicator::Communicator() noexcept = default;
Communicator::Communicator(std::shared_ptr<comm::Group> group) noexcept
    : group_(std::move(group)) {}
Communicator::Communicator(const Communicator&) noexcept = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(const Communicator&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return static_cast<int>(group_->position().rank); }
int Communicator::size() const { return static_cast<int>(group_->position().size); }

std::string_view Communicator::transport() const { return group_->context().transport; }

std::string_view Communicator::host(int rank) const {
  return as_errors([&] { return std::string_view(group_->host_of(rank)); });
}

int Communicator::local_rank() const { return static_cast<int>(group_->local_position().rank); }
int Communicator::local_size() const { return static_cast<int>(group_->local_position().size); }

int Communicator::rank_in(const Communicator& other, int rank) const {
  return as_errors([&] { return group_->rank_in(*other.group_, rank); });
}

void Communicator::monitored_barrier(std::optional<std::chrono::nanoseconds> timeout) {
  group_->check_process();
  Status status = group_->monitored_barrier(timeout);
  if (!status.ok()) throw_error(std::move(status));
}

void Communicator::abort(std::string_view reason) noexcept {
  if (group_ != nullptr && !group_->is_inherited()) group_->abort(reason);
}

Communicator Communicator::split(int color, int key) {
  group_->check_process();
  return Communicator(value_of(group_->split(color, key), "split"));
}

Communicator Communicator::group(std::span<const int> ranks, std::string_view name,
                                 std::optional<std::chrono::nanoseconds> timeout) {
  group_->check_process();
  return as_errors(
      [&] { return Communicator(value_of(group_->group(ranks, name, timeout), "group")); });
}

Communicator Communicator::dup() {
  group_->check_process();
  return Communicator(value_of(group_->split(0, rank()), "dup"));
}

Communicator join(const JoinOptions& options) {
  return as_errors([&] {
    const auto context = value_of(comm::make_context(options), "join");
    const world::World& world = context->world;
    return Communicator(
        comm::make_group(context,
                         comm::Membership::of_world(static_cast<std::uint32_t>(world.rank),
                                                    static_cast<std::uint32_t>(world.size)),
                         options.operation_timeout));
  });
}

void leave_all_worlds() noexcept { health::leave_all_worlds(); }

namespace {

/// The store of a meeting, and on rank 0 a share of its server.
struct MeetingStore {
  explicit MeetingStore(world::World world)
      : server(std::move(world.server)), store(std::move(world.store)) {}

  const world::ServerLease server;
  bridge::BuiltInStore store;
};

}  // namespace

Meeting meet(const JoinOptions& options) {
  return as_errors([&] {
    const Config config = value_of(process_config().with(options.settings), "meet");
    // Counted apart from the worlds that join() forms.
    auto world = value_of(comm::find_world(options, ".meet" + options.name, config), "meet");
    Meeting meeting = {.rank = world.rank, .size = world.size};
    const auto shared = std::make_shared<MeetingStore>(std::move(world));
    meeting.store = std::shared_ptr<Store>(shared, &shared->store);
    return meeting;
  });
}

}  // namespace hocket::inline v1
