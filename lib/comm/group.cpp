#include "comm/group.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "comm/arguments.hpp"
#include "comm/device_path.hpp"
#include "comm/find_device.hpp"
#include "comm/roll_call.hpp"

namespace hocket::comm {

Group::Group(std::shared_ptr<Context> context, Membership members, Duration timeout)
    : core_(std::move(context), std::move(members), timeout), host_path_(core_), mail_(core_) {}

Group::~Group() = default;

Status Group::inherited() { return inherited_status("a communicator"); }

Result<Route> Group::route_of(const Collective& collective) {
  const device::Runtime* const runtime = context().runtime;
  const Options& options = collective.options;
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
    if (device_path_ == nullptr) {  // which costs lanes and memory
      if (Status status = check(collective, place()); !status.ok()) return refused(status);
      if (Status status = engine().failure_of(core_.group()); !status.ok()) return refused(status);
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
  if (Status status = comm::check(Options{.timeout = timeout}); !status.ok()) {
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
  const Membership& members = core_.members();
  const auto name_of = [&](int rank) {
    return fmt::format("rank {} ({})", rank,
                       context().processes[members.in_world(static_cast<std::uint32_t>(rank))]);
  };
  const auto list = [&](std::span<const int> ranks) {
    constexpr std::size_t named_max = 8;
    std::string text;
    for (const int rank : ranks.first(std::min(ranks.size(), named_max))) {
      text += fmt::format("{}{}", text.empty() ? "" : ", ", name_of(rank));
    }
    return ranks.size() > named_max ? text + ", …" : text;
  };
  return call_roll({.store = *context().world.store,
                    .keys = fmt::format("roll/{:x}/{}/", core_.members().record_id(), number),
                    .place = place(),
                    .timeout = timeout,
                    .list = list,
                    .loss = [&] { return engine().failure_of(core_.group()); }});
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
  if (place().rank == 0) {
    const auto id = context().world.store->add("communicators", 1);
    no_id = id.status();
    ours.id = id.ok() ? *id : -1;
  }
  std::vector<Wish> wishes(place().size);
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
  const auto make_part = [&]() -> Result<std::shared_ptr<Group>> {
    std::vector<std::uint32_t> chosen;  // ranks of this communicator
    for (std::uint32_t i = 0; i < place().size; ++i) {
      if (wishes[i].color == color) chosen.push_back(i);
    }
    std::ranges::stable_sort(chosen, {}, [&](std::uint32_t i) { return wishes[i].key; });
    const auto own =
        static_cast<std::uint32_t>(std::ranges::find(chosen, place().rank) - chosen.begin());
    auto part = make_group(core_.context(), core_.members().part(id, chosen, own), core_.timeout());
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

Status Group::split_devices(int color, int key, Group* child) {
  if (device_path_ == nullptr) return {};
  return device_path_->split(color, key, child == nullptr ? nullptr : &child->device_path());
}

}  // namespace hocket::comm
