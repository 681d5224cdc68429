// Operations in the background, and prepared ones.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"

#include "comm/arguments.hpp"
#include "comm/device.hpp"
#include "comm/group.hpp"
#include "comm/guard.hpp"
#include "comm/started.hpp"

namespace hocket::comm {

struct Planned {
  Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  ~Planned() {
    for (const RegisteredMemory& each : memory) group->engine().deregister_memory(each);
    for (void* const each : announced) group->devices().forget(each);
  }

  std::shared_ptr<Group> group = {};
  std::vector<Piece> pieces = {};
  std::vector<std::size_t> counts = {};
  std::vector<std::size_t> counts_from = {};
  Collective collective = {};  // of those
  Operation operation = {};
  std::vector<RegisteredMemory> memory = {};
  int device = -1;  // or its memory is of one
  std::vector<void*> announced = {};
  bool is_announced = false;
};

}  // namespace hocket::comm

namespace hocket::inline v0 {
namespace {

/// How often wait_any looks at operations on device memory.
constexpr Duration device_look = std::chrono::microseconds(50);

const engine::Work& work_of(const comm::Started& started) noexcept {
  return started.device != nullptr ? started.device->work : started.work;
}

/// Until it is over, or the deadline. Whether it is over.
bool wait_for_end(comm::Started& started, Deadline deadline = {}) {
  return started.device != nullptr ? started.group->devices().wait(*started.device, deadline)
                                   : started.group->engine().wait(started.work, deadline);
}

bool test(comm::Started& started) {
  return started.device != nullptr ? started.group->devices().test(*started.device)
                                   : started.group->engine().test(started.work);
}

/// Of an operation that is over.
Status status_of(const comm::Started& started) {
  const Status& status = work_of(started).status();
  if (status.ok()) return {};
  if (started.device != nullptr) return started.group->explain(*started.device, status);
  return std::visit([&](const auto& each) { return started.group->explain(each, status); },
                    started.operation);
}

bool is_over_and_well(const comm::Started& started) {
  return work_of(started).is_over() && work_of(started).status().ok();
}

std::unique_ptr<comm::Started> take(const std::shared_ptr<comm::Group>& group,
                                    const Options& options) {
  auto started = group->started().take();
  started->group = group;
  started->work.call_at_end(options.on_end, options.on_end_context);
  return started;
}

/// Of an operation that is over, or that a stream waits for; the group may go with it.
void give_back(std::unique_ptr<comm::Started> started) {
  const auto group = std::exchange(started->group, nullptr);
  if (started->device != nullptr) group->devices().release(*started->device);
  started->device = nullptr;
  started->is_ordered = false;
  started->operation = {};
  group->started().give_back(std::move(started));
}

/// Throws where begin() fails or throws, and then nothing is under way.
template <class Name, class Begin>
Work begin_work(comm::Group& group, const Name& operation, const Begin& begin) {
  auto started =
      group.guarded(operation, [&]() -> Result<std::unique_ptr<comm::Started>> { return begin(); });
  if (!started.ok()) throw_error(started.status());
  return Work(std::move(*started));
}

Work start_on_device(const std::shared_ptr<comm::Group>& group, const Collective& collective,
                     int device) {
  return begin_work(*group, collective.kind, [&]() -> Result<std::unique_ptr<comm::Started>> {
    auto started = group->started().take();
    auto operation =
        group->start_on_device(collective, device, device::Group::Order::beside, false);
    if (!operation.ok()) return operation.status();
    started->group = group;
    started->device = *operation;
    return started;
  });
}

/// Tells the offload of memory that is used again, once there is one. Only where every rank has
/// some, and as much: an operation has announced memory on all ranks or on none.
void announce(comm::Planned& planned) {
  const Collective& it = planned.collective;
  const bool is_for_root = it.kind == CollectiveKind::reduce || it.kind == CollectiveKind::gather ||
                           it.kind == CollectiveKind::scatter;
  if (std::exchange(planned.is_announced, true) || is_for_root || !it.counts.empty()) return;
  for (const RegisteredMemory& each : comm::lasting_memory(it, planned.group->place())) {
    auto* const data = const_cast<std::byte*>(each.data);
    planned.announced.push_back(planned.group->devices().announce(data, each.bytes));
  }
}

Work start(const std::shared_ptr<comm::Group>& group, comm::Operation operation,
           const Collective& collective) {
  return begin_work(*group, collective.kind, [&] {
    auto started = take(group, collective.options);
    group->number(collective, operation);
    started->pieces.assign(collective.pieces.begin(), collective.pieces.end());
    operation.task.pieces = started->pieces;
    operation.task.work = &started->work;
    started->operation = std::move(operation);
    group->engine().start_in_background(std::get<comm::Operation>(started->operation).task);
    return started;
  });
}

std::unique_ptr<comm::Planned> plan(const std::shared_ptr<comm::Group>& group,
                                    const Collective& collective) {
  auto planned = std::make_unique<comm::Planned>();
  planned->group = group;
  planned->pieces.assign(collective.pieces.begin(), collective.pieces.end());
  planned->collective = collective;
  planned->collective.pieces = planned->pieces;
  planned->counts.assign(collective.counts.begin(), collective.counts.end());
  planned->collective.counts = planned->counts;
  planned->counts_from.assign(collective.counts_from.begin(), collective.counts_from.end());
  planned->collective.counts_from = planned->counts_from;
  const auto device = group->device_of(collective);
  if (!device.ok()) throw_error(device.status());
  planned->device = *device;
  const bool on_host = *device < 0;
  Status status = on_host ? group->set_up(planned->collective, planned->operation)
                          : comm::check(collective, group->place());
  if (!status.ok()) throw_error(std::move(status));
  if (!on_host) return planned;
  planned->memory = comm::lasting_memory(collective, group->place());
  for (const RegisteredMemory& each : planned->memory) group->engine().register_memory(each);
  return planned;
}

}  // namespace

Work::Work() noexcept = default;
Work::Work(std::unique_ptr<comm::Started> operation) noexcept : operation_(std::move(operation)) {}
Work::Work(Work&& other) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  std::swap(operation_, other.operation_);
  return *this;
}

Work::~Work() {
  if (operation_ == nullptr) return;
  if (operation_->group->is_inherited()) {
    abandon(operation_);
    return;
  }
  if (!operation_->is_ordered) wait_for_end(*operation_);
  give_back(std::move(operation_));
}

void Work::wait() {
  if (operation_ == nullptr) return;
  operation_->group->check_process();
  wait_for_end(*operation_);
  if (Status failure = status(); !failure.ok()) throw_error(std::move(failure));
}

void Work::wait(Stream stream) {
  if (operation_ == nullptr) return;
  operation_->group->check_process();
  if (operation_->device == nullptr) {
    throw_error(Status(StatusCode::invalid_argument,
                       "wait: a stream can't wait for an operation on memory of the host")
                    .with_hint("wait() waits for it"));
  }
  Status status = operation_->group->devices().make_wait(*operation_->device, stream.handle);
  if (!status.ok()) throw_error(std::move(status));
  operation_->is_ordered = true;
}

bool Work::wait_for(std::chrono::nanoseconds time) {
  if (operation_ == nullptr) return true;
  operation_->group->check_process();
  const Deadline deadline = Deadline::after(monotonic_clock(), time);
  if (!wait_for_end(*operation_, deadline)) return false;
  if (Status failure = status(); !failure.ok()) throw_error(std::move(failure));
  return true;
}

bool Work::is_over() {
  if (operation_ == nullptr) return true;
  operation_->group->check_process();
  return test(*operation_);
}

Status Work::status() const {
  if (operation_ == nullptr) return {};
  if (operation_->group->is_inherited()) return comm::Group::inherited();
  if (work_of(*operation_).is_over()) return status_of(*operation_);
  return Status(StatusCode::in_progress, "the operation has not ended yet")
      .with_hint("wait() waits for its end");
}

Received Work::received() const {
  if (operation_ != nullptr) operation_->group->check_process();
  const Message* const message =
      operation_ == nullptr ? nullptr : std::get_if<Message>(&operation_->operation);
  if (message == nullptr || !is_over_and_well(*operation_)) {
    throw_error(Status(StatusCode::invalid_argument, "received: no message that came"));
  }
  return comm::received_of(*message, operation_->received);
}

std::size_t wait_any(std::span<Work> works) {
  if (works.empty()) throw_error(Status(StatusCode::invalid_argument, "wait_any: no works"));
  thread_local std::vector<const engine::Work*> waiting;  // memory that is taken once
  comm::as_errors([&] { waiting.reserve(works.size()); });
  while (true) {
    const auto over = std::ranges::find_if(works, [](Work& work) { return work.is_over(); });
    if (over != works.end()) return static_cast<std::size_t>(over - works.begin());
    waiting.clear();
    bool has_device = false;
    for (const Work& work : works) {
      waiting.push_back(&work_of(*work.operation_));
      has_device = has_device || work.operation_->device != nullptr;
    }
    // Kernels wake nobody up: is_over() looks at them.
    const Deadline look = has_device ? Deadline::after(monotonic_clock(), device_look) : Deadline();
    works.front().operation_->group->engine().wait_any(waiting, look);
  }
}

void wait_all(std::span<Work> works) {
  Status failure;
  for (Work& work : works) {
    if (work.operation_ == nullptr) continue;
    work.operation_->group->check_process();
    wait_for_end(*work.operation_);
    if (failure.ok()) failure = work.status();
  }
  if (!failure.ok()) throw_error(std::move(failure));
}

Prepared::Prepared(std::unique_ptr<comm::Planned> operation) noexcept
    : operation_(std::move(operation)) {}
Prepared::Prepared(Prepared&& other) noexcept = default;
Prepared& Prepared::operator=(Prepared&& other) noexcept {
  const Prepared replaced(std::move(*this));
  operation_ = std::move(other.operation_);
  return *this;
}

Prepared::~Prepared() {
  if (operation_ != nullptr && operation_->group->is_inherited()) abandon(operation_);
}

void Prepared::run() {
  operation_->group->check_process();
  if (operation_->device >= 0) {
    Status status = operation_->group->run_on_device(operation_->collective, operation_->device);
    if (!status.ok()) throw_error(std::move(status));
    return announce(*operation_);
  }
  Status status = operation_->group->run(operation_->collective, operation_->operation);
  if (!status.ok()) throw_error(std::move(status));
}

Work Prepared::start() {
  operation_->group->check_process();
  if (operation_->device >= 0) {
    Work work = v0::start_on_device(operation_->group, operation_->collective, operation_->device);
    announce(*operation_);
    return work;
  }
  return v0::start(operation_->group, operation_->operation, operation_->collective);
}

Work Communicator::start(const Collective& collective) {
  group_->check_process();
  const auto device = group_->device_of(collective);
  if (!device.ok()) throw_error(device.status());
  if (*device >= 0) return start_on_device(group_, collective, *device);
  comm::Operation operation;
  Status status = group_->set_up(collective, operation);
  if (!status.ok()) throw_error(std::move(status));
  return v0::start(group_, std::move(operation), collective);
}

Work Communicator::start(const Message& message) {
  group_->check_process();
  auto parcel = group_->parcel_of(message);
  if (!parcel.ok()) throw_error(parcel.status());
  return begin_work(*group_, message.is_sent ? "send" : "recv", [&] {
    auto started = take(group_, message.options);
    started->operation = message;
    parcel->work = &started->work;
    parcel->received = &started->received;
    group_->engine().start_in_background(group_->engine_group(), *parcel);
    return started;
  });
}

Prepared Communicator::prepare(const Collective& collective) {
  group_->check_process();
  return comm::as_errors([&] { return Prepared(plan(group_, collective)); });
}

}  // namespace hocket::inline v0
