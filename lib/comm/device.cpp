#include "comm/device.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/environment.hpp"
#include "base/limits.hpp"
#include "comm/card.hpp"
#include "comm/kinds.hpp"
#include "device/offload.hpp"
#include "world/entry.hpp"

namespace hocket::comm {
namespace {

constexpr Duration loss_interval = std::chrono::milliseconds(5);
/// For what a rank that is gone has done before to arrive here.
constexpr Duration loss_grace = std::chrono::milliseconds(50);

Status wrong_buffer(std::string what) { return {StatusCode::invalid_argument, std::move(what)}; }

bool is_of_device(MemoryKind kind) noexcept {
  return kind == MemoryKind::device || kind == MemoryKind::managed;
}

/// What the pointers of a collective have in common.
class Finder {
 public:
  explicit Finder(const device::Runtime& runtime) : runtime_(runtime) {}

  [[nodiscard]] Status look_at(const void* memory) {
    if (memory == nullptr) return {};
    const auto facts = runtime_.facts_of(memory);
    // A device in trouble is not the host's.
    if (!facts.ok()) unknown_ = facts.status();
    const auto kind = facts.ok() ? static_cast<MemoryKind>(facts->kind) : MemoryKind::host;
    has_host_ = has_host_ || kind == MemoryKind::host;
    if (kind == MemoryKind::host) return {};
    has_device_ = has_device_ || is_of_device(kind);
    if (is_of_device(kind) && device_ >= 0 && device_ != facts->device) {
      return Status(
                 wrong_buffer(fmt::format("its buffers are in memory of device {} and of device {}",
                                          device_, facts->device)))
          .with_hint("give each operation buffers of one device");
    }
    if (is_of_device(kind)) device_ = facts->device;
    return {};
  }

  [[nodiscard]] Result<int> device(bool has_stream) const {
    if (!has_device_ && !has_stream) return -1;
    if (has_host_) {
      return Status(wrong_buffer(has_device_
                                     ? "its buffers are in memory of the host and of a device"
                                     : "it has a stream, but its memory of the host is not pinned"))
          .with_hint("copy it first, or allocate it pinned")
          .caused_by(unknown_);
    }
    return has_device_ ? device_ : current();
  }

  [[nodiscard]] Result<int> current() const {
    int device = 0;
    Status status = runtime_.check(runtime_->get_device(&device), "asking for the device");
    if (!status.ok()) return status;
    return device;
  }

 private:
  const device::Runtime& runtime_;
  bool has_host_ = false;
  bool has_device_ = false;
  int device_ = -1;
  Status unknown_;  // why the device's runtime does not know of some memory
};

}  // namespace

Status Twin::start(const Collective& collective, std::size_t place, engine::Work& work,
                   Deadline deadline) {
  Operation& operation = operations_.at(place);
  if (Status status = twin_->set_up(collective, operation); !status.ok()) return status;
  operation.task.work = &work;
  operation.task.number = ++calls_;
  operation.task.begun = monotonic_clock().now();
  operation.task.deadline = deadline;
  engine().start(operation.task);
  return {};
}

Status Twin::loss(Instant now) {
  if (now < next_look_) return {};
  next_look_ = now + loss_interval;
  if (Status failure = engine().failure_of(users_.engine_group()); !failure.ok()) return failure;
  Status loss = engine().loss_of(twin_->engine_group());
  if (loss.ok()) return {};
  lost_since_ = std::min(lost_since_, now);
  return now - lost_since_ < loss_grace ? Status() : loss;
}

void Twin::fail(const Status& why) {
  engine().fail(twin_->engine_group(), why);
  engine().fail(users_.engine_group(), why);
}

Result<int> find_device(const device::Runtime& runtime, const Collective& collective) {
  Finder finder(runtime);
  const Options& options = collective.options;
  if (is_of_device(options.memory)) return finder.current();
  if (options.memory != MemoryKind::detect) {
    if (!options.stream) return -1;
    if (options.memory == MemoryKind::pinned) return finder.current();
  }
  for (const void* const each : {collective.in, static_cast<const void*>(collective.out)}) {
    if (Status status = finder.look_at(each); !status.ok()) return status;
  }
  for (const Piece& each : collective.pieces) {
    if (each.count == 0) continue;
    if (Status status = finder.look_at(each.data); !status.ok()) return status;
  }
  return finder.device(options.stream.has_value());
}

std::string host_of_devices() {
  const std::string_view id = process_environment().get("NCCL_HOSTID");
  return id.empty() ? fmt::format("{} {}", own_machine(), world::describe_process().host)
                    : std::string(id);
}

Result<int> Group::device_of(const Collective& collective) {
  const Options& options = collective.options;
  if (context_->runtime == nullptr && !options.stream && !is_of_device(options.memory)) return -1;
  return guarded(collective.kind, [&]() -> Result<int> {
    const auto operation = [&] { return std::string(name(collective.kind)); };
    if (context_->runtime == nullptr) {
      return Status(StatusCode::unsupported, options.stream
                                                 ? "a stream, and no device's runtime"
                                                 : "device memory, and no device's runtime")
          .with_operation(operation())
          .caused_by(device::process_runtime().status());
    }
    auto device = find_device(*context_->runtime, collective);
    if (!device.ok()) return device.status().with_operation(operation());
    return device;
  });
}

device::Group& Group::devices() {
  if (devices_ == nullptr) {
    const device::OffloadKind* const offload =
        process_config().get(variables::nccl) ? device::built_in_offload() : nullptr;
    devices_ = std::make_unique<Devices>(
        *this, std::make_unique<Group>(context_, members_.twin(), timeout_),
        device::GroupOptions{.seat = {.rank = place().rank, .size = place().size},
                             .host = host_of_devices(),
                             .offload = offload,
                             .slot_bytes = std::max<std::size_t>(limits::staging_slot_bytes,
                                                                 std::size_t{place().size} * 64),
                             .allows_gpudirect = process_config().get(variables::gpudirect)});
  }
  return devices_->group;
}

Result<device::Operation*> Group::start_on_device(const Collective& collective, int device,
                                                  device::Group::Order order, bool is_awaited) {
  return guarded(collective.kind,
                 [&] { return begin_on_device(collective, device, order, is_awaited); });
}

Result<device::Operation*> Group::begin_on_device(const Collective& collective, int device,
                                                  device::Group::Order order, bool is_awaited) {
  const auto refused = [&](Status why) {
    return std::move(why).with_operation(std::string(name(collective.kind)));
  };
  if (Status status = comm::check(collective, place()); !status.ok()) return refused(status);
  if (plan::reduces(operation_of(collective.kind))) {
    const auto reduction = make_reduction(collective, place().size);
    if (!reduction.ok()) return refused(reduction.status());
  }
  if (Status status = engine().failure_of(group_); !status.ok()) return refused(status);
  auto started =
      devices().start(collective, device, deadline_of(collective.options, monotonic_clock().now()),
                      order, is_awaited);
  if (!started.ok()) return refused(started.status());
  return started;
}

Status Group::run_on_device(const Collective& collective, int device) {
  const std::optional<Stream>& stream = collective.options.stream;
  const auto started =
      start_on_device(collective, device, device::Group::Order::in_stream, !stream);
  if (!started.ok()) return started.status();
  device::Operation& operation = **started;
  Status status;
  if (stream) {
    status = devices().make_wait(operation, stream->handle);
  } else {
    devices().wait(operation);
    status = operation.work.status();
    if (!status.ok()) status = explain(operation, status);
  }
  devices().release(operation);
  return status;
}

Status Group::explain(const device::Operation& operation, const Status& first) const noexcept {
  const Status why = cause_of(first);
  return explained(why, [&] {
    const std::string_view kind = name(operation.collective.kind);
    return Status(why.code(), fmt::format("{} by {} failed on rank {} of {}", kind, operation.way,
                                          place().rank, place().size))
        .with_rank(static_cast<int>(place().rank))
        .with_peer(why.peer())
        .with_step(why.step())
        .with_operation(fmt::format("{} #{} on device memory", kind, operation.number))
        .caused_by(why);
  });
}

Status Group::split_devices(int color, int key, Group* child) {
  if (devices_ == nullptr) return {};
  device::Group* const childs = child == nullptr ? nullptr : &child->devices();
  return devices_->group.split(color, key, childs, deadline_of({}, monotonic_clock().now()));
}

}  // namespace hocket::comm
