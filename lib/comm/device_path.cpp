#include "comm/device_path.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/environment.hpp"
#include "base/limits.hpp"
#include "base/machine.hpp"
#include "comm/arguments.hpp"
#include "comm/card.hpp"
#include "comm/kinds.hpp"
#include "comm/reports.hpp"
#include "device/offload.hpp"
#include "world/entry.hpp"

namespace hocket::comm {
namespace {

constexpr Duration loss_interval = std::chrono::milliseconds(5);
constexpr Duration question_interval = std::chrono::milliseconds(20);
/// How long a rank may be gone before that counts as a loss: its last messages may still arrive.
constexpr Duration loss_grace = std::chrono::milliseconds(50);

/// Identifies this host, so that two ranks on it do not use one device.
std::string host_of_devices() {
  const std::string_view id = process_environment().get("NCCL_HOSTID");
  return id.empty() ? fmt::format("{} {}", own_machine(), world::describe_process().host)
                    : std::string(id);
}

/// Of the staged way: room for a few elements of each rank.
std::size_t slot_bytes_of(const Position& position) noexcept {
  return std::max<std::size_t>(limits::staging_slot_bytes, std::size_t{position.size} * 64);
}

device::DeviceSideOptions options_of(const Position& position, const Config& config) {
  return {.position = {.rank = position.rank, .size = position.size},
          .host = host_of_devices(),
          .offload = config.get(variables::nccl) ? device::built_in_offload() : nullptr,
          .slot_bytes = slot_bytes_of(position),
          .allows_gpudirect = config.get(variables::gpudirect)};
}

/// Registers its memory with the offload after the first run. All ranks must register the same
/// number of buffers, so rooted and uneven collectives are left out.
class PreparedOnDevice final : public PreparedCollective {
 public:
  PreparedOnDevice(DevicePath& path, std::shared_ptr<Group> group, const Collective& collective,
                   const Position& position, int device)
      : PreparedCollective(std::move(group), path, collective), path_(path), device_(device) {
    const bool is_for_root = collective.kind == CollectiveKind::reduce ||
                             collective.kind == CollectiveKind::gather ||
                             collective.kind == CollectiveKind::scatter;
    if (!is_for_root && collective.counts.empty()) memory_ = lasting_memory(collective, position);
    announced_.reserve(memory_.size());  // so that it takes no memory once an operation has begun
  }
  PreparedOnDevice(const PreparedOnDevice&) = delete;
  PreparedOnDevice& operator=(const PreparedOnDevice&) = delete;
  ~PreparedOnDevice() override {
    for (void* const each : announced_) path_.devices().forget(each);
  }

  [[nodiscard]] Status run() override {
    Status status = path_.run(collective(), device_);
    if (status.ok()) announce();
    return status;
  }
  [[nodiscard]] Status start(Operation& operation) override {
    Status status = path_.start(collective(), device_, operation);
    if (status.ok()) announce();
    return status;
  }

 private:
  void announce() {
    for (const RegisteredMemory& each : std::exchange(memory_, {})) {
      auto* const data = const_cast<std::byte*>(each.data);
      announced_.push_back(path_.devices().announce(data, each.bytes));
    }
  }

  DevicePath& path_;
  const int device_;
  std::vector<RegisteredMemory> memory_;  // that is not announced yet
  std::vector<void*> announced_;
};

}  // namespace

DevicePath::DevicePath(GroupCore& core)
    : CollectivePath(core.engine()),
      core_(core),
      window_core_(core.context(), core.members().twin(), core.timeout(), 1),
      host_(window_core_),
      devices_(*core.context()->runtime, *this,
               options_of(core.position(), core.context()->config)) {
  if (core.context()->monitor == nullptr) return;
  watched_ = {.id = core.members().device_calls_unique_id(),
              .members = core.members().members(),
              .fail = [](const Status&) {},  // the communicator is told itself
              .compare =
                  [this](const health::Question& question) {
                    const Status why = core_.compare(calls_.at(question.index), question);
                    if (!why.ok()) engine().abort(core_.group(), core_.members().in_group(why));
                    return Status();  // the communicator tells the others
                  }};
  core.context()->monitor->add(watched_);
}

/// Until nothing is under way, calls are compared and records belong to a communicator.
DevicePath::~DevicePath() {
  devices_.drain();
  const Context& context = *core_.context();
  if (context.monitor != nullptr) context.monitor->remove(watched_);
  if (record_id_ != 0) context.recorder->remove_group(record_id_);
}

void DevicePath::note_call(device::Operation& operation) {
  operation.tag = tag_of(operation.collective, noted_);
  calls_.add(operation.tag.after(history_));
  history_.add(operation.tag);
  called_ = operation.number;
}

/// Each asks the next one: where two ranks differ, so do two that are next to each other. One that
/// has not called it yet does not answer, and is asked again.
void DevicePath::compare_call(std::uint64_t number, Instant now) noexcept {
  const Position& position = core_.position();
  if (number == 0 || position.size == 1 || now < next_question_) return;
  next_question_ = now + question_interval;
  const auto tag = calls_.at(number - 1);
  if (!tag) return;
  core_.context()->monitor->ask(
      {.to = core_.members().in_world((position.rank + 1) % position.size),
       .communicator = watched_.id,
       .index = number - 1,
       .tag = *tag});
}

std::uint64_t DevicePath::begin_record(const device::Operation& operation, Instant now) noexcept {
  record::Recorder* const recorder = core_.context()->recorder.get();
  if (recorder == nullptr) return 0;
  const Position& position = core_.position();
  if (record_id_ == 0) {
    record_id_ = core_.members().unique_id() | record::offload_bit;
    recorder->add_group(record_id_, position.rank, position.size);
  }
  const Collective& collective = operation.collective;
  return engine().begin_record({.kind = static_cast<std::uint8_t>(operation_of(collective.kind)),
                                .communicator = record_id_,
                                .number = operation.number,
                                .tag = operation.tag.bits(),
                                .bytes = in_bytes(collective, position),
                                .begun = now});
}

Status DevicePath::loss(Instant now) {
  if (now < next_look_) return {};
  next_look_ = now + loss_interval;
  compare_call(called_, now);
  if (Status failure = engine().failure_of(core_.group()); !failure.ok()) return failure;
  Status loss = engine().loss_of(window_core_.group());
  if (loss.ok()) return {};
  lost_since_ = std::min(lost_since_, now);
  return now - lost_since_ < loss_grace ? Status() : loss;
}

void DevicePath::fail(const Status& why) {
  engine().fail(window_core_.group(), why);
  engine().fail(core_.group(), why);
}

Result<device::Operation*> DevicePath::begin(const Collective& collective, int device,
                                             device::DeviceSide::Order order,
                                             Operation* operation) {
  const auto refused = [&](Status why) {
    return std::move(why).with_operation(std::string(name(collective.kind)));
  };
  return core_.guarded(collective.kind, [&]() -> Result<device::Operation*> {
    const Position& position = core_.position();
    if (Status status = check(collective, position); !status.ok()) return refused(status);
    if (size_of(collective.type) * 4 * position.size > slot_bytes_of(position)) {
      return refused(
          {StatusCode::unsupported, "elements so large, of so many ranks, in memory of a device"});
    }
    if (!collective.in_pieces.empty() || !collective.out_pieces.empty()) {
      return refused({StatusCode::unsupported,
                      "pieces of device memory: only all_reduce and broadcast in place take them"});
    }
    if (plan::reduces(operation_of(collective.kind))) {
      const auto reduction = make_reduction(collective, position.size);
      if (!reduction.ok()) return refused(reduction.status());
    }
    if (Status status = engine().failure_of(core_.group()); !status.ok()) {
      return core_.failure_before(name(collective.kind), status);
    }
    const Deadline deadline = core_.deadline_of(collective.options, monotonic_clock().now());
    const OperationOptions& options = collective.options;
    const bool is_awaited = operation == nullptr && !options.stream;
    const engine::EndNote note =
        is_awaited ? engine::EndNote() : note_of(*core_.context(), operation, options);
    Collective noting = collective;
    noting.options.on_end = note.function;
    noting.options.on_end_context = note.context;
    const auto drop = [&] {
      if (options.queue == nullptr) Callbacks::drop(note);
    };
    try {
      auto started = devices_.start(noting, device, deadline, order, is_awaited);
      if (started.ok()) return started;
      drop();
      return refused(started.status());
    } catch (...) {
      drop();
      throw;
    }
  });
}

Status DevicePath::run(const Collective& collective, int device) {
  const std::optional<Stream>& stream = collective.options.stream;
  const auto started = begin(collective, device, device::DeviceSide::Order::in_stream, nullptr);
  if (!started.ok()) return started.status();
  device::Operation& operation = **started;
  Status status;
  if (stream) {
    status = devices_.make_wait(operation, stream->handle);
    if (status.ok() && operation.work.is_over()) status = operation.work.status();
    if (operation.work.is_over() && !status.ok()) status = explain(operation, status);
  } else {
    devices_.wait(operation);
    status = operation.work.status();
    Callbacks::call(collective.options, status.code());
    if (!status.ok()) status = explain(operation, status);
  }
  devices_.release(operation);
  return status;
}

Status DevicePath::start(const Collective& collective, int device, Operation& operation) {
  const auto started = begin(collective, device, device::DeviceSide::Order::beside, &operation);
  if (!started.ok()) return started.status();
  operation.device = *started;
  operation.work = &operation.device->work;
  return {};
}

Result<std::unique_ptr<PreparedCollective>> DevicePath::prepare(std::shared_ptr<Group> group,
                                                                const Collective& collective,
                                                                int device) {
  if (Status status = check(collective, core_.position()); !status.ok()) return status;
  return std::unique_ptr<PreparedCollective>(std::make_unique<PreparedOnDevice>(
      *this, std::move(group), collective, core_.position(), device));
}

Status DevicePath::make_wait(Operation& operation, Stream stream) {
  Status status = devices_.make_wait(*operation.device, stream.handle);
  if (status.ok()) operation.is_ordered = true;
  return status;
}

void DevicePath::let_go(Operation& operation) noexcept {
  devices_.release(*std::exchange(operation.device, nullptr));
  operation.is_ordered = false;
}

Status DevicePath::split(int color, int key, DevicePath* part) {
  return devices_.split(color, key, part == nullptr ? nullptr : &part->devices_,
                        core_.deadline_of({}, monotonic_clock().now()));
}

Status DevicePath::explain(const device::Operation& operation, const Status& first) const noexcept {
  return core_.failure(core_.cause_of(first), [&] {
    const std::string_view kind = name(operation.collective.kind);
    return std::pair(fmt::format("{} by {}", kind, operation.way),
                     fmt::format("{} #{} on device memory", kind, operation.number));
  });
}

}  // namespace hocket::comm
