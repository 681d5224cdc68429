// Operations in the background, and prepared ones.
#include <algorithm>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"

#include "comm/arguments.hpp"
#include "comm/group.hpp"
#include "comm/started.hpp"

namespace hocket::comm {

struct Planned {
  Planned() = default;
  Planned(const Planned&) = delete;
  Planned& operator=(const Planned&) = delete;
  ~Planned() {
    for (const RegisteredMemory& each : memory) group->engine().deregister_memory(each);
  }

  std::shared_ptr<Group> group = {};
  std::vector<Piece> pieces = {};
  Collective collective = {};  // of those
  Operation operation = {};
  std::vector<RegisteredMemory> memory = {};
};

}  // namespace hocket::comm

namespace hocket::inline v0 {
namespace {

/// Of an operation that is over.
Status status_of(const comm::Started& started) {
  const Status& status = started.work.status();
  if (status.ok()) return {};
  return std::visit([&](const auto& each) { return started.group->explain(each, status); },
                    started.operation);
}

bool is_over_and_well(const comm::Started& started) {
  return started.work.is_over() && started.work.status().ok();
}

std::unique_ptr<comm::Started> take(const std::shared_ptr<comm::Group>& group,
                                    const Options& options) {
  auto started = group->started().take();
  started->group = group;
  started->work.call_at_end(options.on_end, options.on_end_context);
  return started;
}

/// Of an operation that is over; the group may go with it.
void give_back(std::unique_ptr<comm::Started> started) {
  const auto group = std::exchange(started->group, nullptr);
  started->operation = {};
  group->started().give_back(std::move(started));
}

Work start(const std::shared_ptr<comm::Group>& group, comm::Operation operation,
           const Collective& collective) {
  auto started = take(group, collective.options);
  group->number(collective, operation);
  started->pieces.assign(collective.pieces.begin(), collective.pieces.end());
  operation.task.pieces = started->pieces;
  operation.task.work = &started->work;
  started->operation = std::move(operation);
  group->engine().start_in_background(std::get<comm::Operation>(started->operation).task);
  return Work(std::move(started));
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
  operation_->group->engine().wait(operation_->work);
  give_back(std::move(operation_));
}

void Work::wait() {
  if (operation_ == nullptr) return;
  operation_->group->engine().wait(operation_->work);
  if (Status failure = status(); !failure.ok()) throw_error(std::move(failure));
}

bool Work::wait_for(std::chrono::nanoseconds time) {
  if (operation_ == nullptr) return true;
  const Deadline deadline = Deadline::after(monotonic_clock(), time);
  if (!operation_->group->engine().wait(operation_->work, deadline)) return false;
  if (Status failure = status(); !failure.ok()) throw_error(std::move(failure));
  return true;
}

bool Work::is_over() {
  return operation_ == nullptr || operation_->group->engine().test(operation_->work);
}

Status Work::status() const { return operation_ == nullptr ? Status() : status_of(*operation_); }

Received Work::received() const {
  const Message* const message =
      operation_ == nullptr ? nullptr : std::get_if<Message>(&operation_->operation);
  if (message == nullptr || !is_over_and_well(*operation_)) {
    throw_error(Status(StatusCode::invalid_argument, "received: no message that came"));
  }
  return comm::received_of(*message, operation_->received);
}

std::size_t wait_any(std::span<Work> works) {
  if (works.empty()) throw_error(Status(StatusCode::invalid_argument, "wait_any: no works"));
  const auto over = std::ranges::find_if(works, [](Work& work) { return work.is_over(); });
  if (over != works.end()) return static_cast<std::size_t>(over - works.begin());
  thread_local std::vector<const engine::Work*> waiting;  // memory that is taken once
  waiting.clear();
  for (const Work& work : works) waiting.push_back(&work.operation_->work);
  works.front().operation_->group->engine().wait_any(waiting);
  return wait_any(works);
}

void wait_all(std::span<Work> works) {
  Status failure;
  for (Work& work : works) {
    if (work.operation_ == nullptr) continue;
    work.operation_->group->engine().wait(work.operation_->work);
    if (failure.ok()) failure = work.status();
  }
  if (!failure.ok()) throw_error(std::move(failure));
}

Prepared::Prepared(std::unique_ptr<comm::Planned> operation) noexcept
    : operation_(std::move(operation)) {}
Prepared::Prepared(Prepared&& other) noexcept = default;
Prepared& Prepared::operator=(Prepared&& other) noexcept = default;
Prepared::~Prepared() = default;

void Prepared::run() {
  Status status = operation_->group->run(operation_->collective, operation_->operation);
  if (!status.ok()) throw_error(std::move(status));
}

Work Prepared::start() {
  return v0::start(operation_->group, operation_->operation, operation_->collective);
}

Work Communicator::start(const Collective& collective) {
  comm::Operation operation;
  Status status = group_->set_up(collective, operation);
  if (!status.ok()) throw_error(std::move(status));
  return v0::start(group_, std::move(operation), collective);
}

Work Communicator::start(const Message& message) {
  auto parcel = group_->parcel_of(message);
  if (!parcel.ok()) throw_error(parcel.status());
  auto started = take(group_, message.options);
  started->operation = message;
  parcel->work = &started->work;
  parcel->received = &started->received;
  group_->engine().start_in_background(group_->engine_group(), *parcel);
  return Work(std::move(started));
}

Prepared Communicator::prepare(const Collective& collective) {
  auto planned = std::make_unique<comm::Planned>();
  planned->group = group_;
  planned->pieces.assign(collective.pieces.begin(), collective.pieces.end());
  planned->collective = collective;
  planned->collective.pieces = planned->pieces;
  Status status = group_->set_up(planned->collective, planned->operation);
  if (!status.ok()) throw_error(std::move(status));
  for (const RegisteredMemory& each : comm::lasting_memory(collective, group_->place())) {
    group_->engine().register_memory(each);
    planned->memory.push_back(each);
  }
  return Prepared(std::move(planned));
}

}  // namespace hocket::inline v0
