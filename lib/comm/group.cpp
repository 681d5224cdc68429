#include "comm/group.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/device_path.hpp"
#include "comm/find_device.hpp"
#include "comm/new_group.hpp"
#include "world/number.hpp"
#include "world/roll_call.hpp"

namespace hocket::comm {

Group::Group(const std::shared_ptr<Context>& context, Membership members, Duration timeout)
    : core_(context, std::move(members), timeout, context->overlap),
      host_path_(core_),
      mail_(core_),
      batch_(*this) {}

Group::~Group() = default;

Status Group::inherited() { return inherited_status("a communicator"); }

Position Group::local_position() const noexcept {
  const std::span<const std::uint32_t> members = core_.members().members();
  const auto is_here = [&, hosts = std::span(context().hosts)](std::uint32_t each) {
    return hosts[each] == hosts[members[position().rank]];
  };
  const auto count = [&](std::span<const std::uint32_t> of) {
    return static_cast<std::uint32_t>(std::ranges::count_if(of, is_here));
  };
  return {.rank = count(members.first(position().rank)), .size = count(members)};
}

namespace {

std::uint32_t in_world(const Membership& members, int rank) {
  const int ranks[] = {rank};
  Status status = check_ranks(ranks, members.position());
  if (!status.ok()) throw_error(std::move(status));
  return members.in_world(static_cast<std::uint32_t>(rank));
}

}  // namespace

const std::string& Group::host_of(int rank) const {
  return context().host_names[in_world(core_.members(), rank)];
}

int Group::rank_in(const Group& other, int rank) const {
  if (core_.context() != other.core_.context()) {
    throw_error(Status(StatusCode::invalid_argument,
                       "rank_in: the communicators belong to different worlds"));
  }
  const auto found = other.core_.members().rank_of(in_world(core_.members(), rank));
  return found ? static_cast<int>(*found) : -1;
}

Result<Route> Group::route_of(const Collective& collective) {
  const device::Runtime* const runtime = context().runtime;
  const OperationOptions& options = collective.options;
  const bool is_for_device = options.stream || is_of_device(options.memory);
  if (runtime == nullptr && !is_for_device) return Route{.path = host_path_};
  return core_.guarded(collective.kind, [&]() -> Result<Route> {
    const auto refused = [&](Status why) {
      return std::move(why).with_operation(std::string(name(collective.kind)));
    };
    if (runtime == nullptr) {
      return refused({StatusCode::unsupported, options.stream
                                                   ? "a stream, and no device's runtime"
                                                   : "device memory, and no device's runtime"})
          .caused_by(device::process_runtime().status());
    }
    const auto device = find_device(*runtime, collective);
    if (!device.ok()) return refused(device.status());
    if (*device < 0) return Route{.path = host_path_};
    const auto lock = core_.lock();
    if (device_path_ == nullptr) {  // which costs lanes and memory
      if (Status status = check(collective, position()); !status.ok()) return refused(status);
      if (Status status = engine().failure_of(core_.group()); !status.ok()) {
        return core_.failure_before(name(collective.kind), status);
      }
    }
    return Route{.path = device_path(), .device = *device};
  });
}

DevicePath& Group::device_path() {
  if (device_path_ == nullptr) device_path_ = std::make_unique<DevicePath>(core_);
  return *device_path_;
}

Status Group::run(const Collective& collective) {
  const auto route = route_of(collective);
  return route.ok() ? route->path.run(collective, route->device) : route.status();
}

Status Group::monitored_barrier(std::optional<Duration> timeout) {
  constexpr std::string_view name = "monitored_barrier";
  if (Status status = comm::check(OperationOptions{.timeout = timeout}); !status.ok()) {
    return std::move(status).with_operation(std::string(name));
  }
  const std::uint64_t number = ++monitored_barriers_;
  Status status = engine().failure_of(core_.group());
  if (status.ok())
    status = described([&] { return meet(number, timeout.value_or(core_.timeout())); });
  if (status.ok()) return status;
  // What other ranks did is the communicator's cause, if it has failed.
  const Status why = core_.cause_of(status, status.code() == StatusCode::peer_lost);
  return core_
      .failure(why,
               [&] { return std::pair(std::string(name), fmt::format("{} #{}", name, number)); })
      .with_step(-1);  // that of the cause is of another operation
}

Status Group::meet(std::uint64_t number, Duration timeout) {
  return world::call_roll(
             {.store = *context().world.store,
              .keys = fmt::format("roll/{:x}/{}/", core_.members().unique_id(), number),
              .rank = position().rank,
              .size = position().size,
              .timeout = timeout,
              .list =
                  [&](std::span<const int> ranks) {
                    return list_ranks(context(), core_.members(), ranks);
                  },
              .loss = [&] { return engine().failure_of(core_.group()); }})
      .status();
}

Result<std::shared_ptr<Group>> Group::split(int color, int key) {
  return core_.guarded("split", [&] { return divide(color, key); });
}

Result<std::shared_ptr<Group>> Group::divide(int color, int key) {
  struct Wish {
    std::int64_t color;
    std::int64_t key;
    std::int64_t id;
  };
  Wish ours{color, key, 0};
  Status no_id(StatusCode::system_error, "rank 0 got no number for it from the store");
  if (position().rank == 0) {
    const auto id = take_id(*context().world.store);
    no_id = id.status();
    ours.id = id.ok() ? static_cast<std::int64_t>(*id) : -1;
  }
  std::vector<Wish> wishes(position().size);
  std::vector<std::uint32_t> chosen;  // ranks of this communicator
  chosen.reserve(position().size);    // now, because others wait for this rank from then on
  Status status = host_path_.run({.kind = CollectiveKind::all_gather,
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
  for (std::uint32_t i = 0; i < position().size; ++i) {
    if (wishes[i].color == color) chosen.push_back(i);
  }
  std::ranges::stable_sort(chosen, {}, [&](std::uint32_t i) { return wishes[i].key; });
  auto part = make_part(id, chosen);
  if (Status failure = split_devices(color, key, part.get()); !failure.ok()) return failure;
  return part;
}

std::shared_ptr<Group> Group::make_part(std::uint64_t id, std::span<const std::uint32_t> ranks) {
  try {
    return make_group(core_.context(), core_.members().part(id, ranks), core_.timeout());
  } catch (...) {
    engine().close_lanes(Membership::lanes_of(id));  // the others may wait for this rank there
    throw;
  }
}

Result<std::shared_ptr<Group>> Group::group(std::span<const int> ranks, std::string_view name,
                                            std::optional<Duration> timeout) {
  constexpr std::string_view operation = "group";
  Status status = comm::check(OperationOptions{.timeout = timeout});
  if (status.ok()) status = world::check_name(name, "communicator");
  if (status.ok()) status = check_ranks(ranks, position());
  if (!status.ok()) return std::move(status).with_operation(std::string(operation));
  const std::vector<std::uint32_t> members(ranks.begin(), ranks.end());
  if (std::ranges::find(members, position().rank) == members.end()) return std::shared_ptr<Group>();
  const auto id = number_new_group({.context = *core_.context(),
                                    .parent = core_.members(),
                                    .ranks = members,
                                    .name = name,
                                    .timeout = timeout.value_or(core_.timeout())});
  if (id.ok()) return make_part(*id, members);
  return core_.failure(id.status(), [&] { return std::pair(operation, operation); });
}

Status Group::split_devices(int color, int key, Group* child) {
  DevicePath* own = nullptr;
  {
    const auto lock = core_.lock();
    own = device_path_.get();
  }
  if (own == nullptr) return {};
  return own->split(color, key, child == nullptr ? nullptr : &child->device_path());
}

}  // namespace hocket::comm
