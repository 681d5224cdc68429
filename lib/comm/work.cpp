// Operations of a communicator: at once, in the background, and prepared ones.
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"

#include "base/exception.hpp"
#include "comm/group.hpp"
#include "comm/operation.hpp"
#include "comm/path.hpp"
#include "comm/reports.hpp"

namespace hocket::inline v1 {
namespace {

/// How often wait_any looks at operations whose end it would not notice.
constexpr Duration silent_look = std::chrono::microseconds(50);

bool wait_for_end(const comm::Operation& operation, Deadline deadline = {}) {
  return operation.path->wait(operation, deadline);
}

/// Starts an operation by begin(). Throws if that fails; then nothing is in flight.
template <class Name, class Begin>
Work begin_work(const std::shared_ptr<comm::Group>& group, comm::Path& path, const Name& name,
                const OperationOptions& options, const Begin& begin) {
  std::unique_ptr<comm::Operation> operation;
  comm::Reports* const reports =
      options.queue == nullptr ? nullptr : &comm::Reports::of(*options.queue);
  bool is_expected = false;
  Status status = group->core().guarded(name, [&]() -> Status {
    operation = group->operation_pool().take();
    operation->path = &path;
    operation->reports = reports;
    operation->tag = options.queue_tag;
    operation->holders = reports == nullptr ? 1 : 2;
    operation->until_reported = 2;
    if (reports != nullptr) {
      if (reports->is_inherited()) return comm::Reports::inherited();
      reports->expect(group->core().context(), path.ends_silently());
      is_expected = true;
    }
    return begin(*operation);
  });
  if (!status.ok()) {
    if (is_expected) reports->expect_no_more();
    if (operation != nullptr) group->operation_pool().give_back(std::move(operation));
    throw_error(std::move(status));
  }
  operation->group = group;
  if (reports != nullptr && comm::Reports::publish(*operation)) group->engine().wake();
  return Work(std::move(operation));
}

/// Returns the first of so many operations that is over; null is over already.
template <class OperationAt>
std::size_t wait_for_any(std::size_t count, const OperationAt& operation_at) {
  if (count == 0) throw_error(Status(StatusCode::invalid_argument, "wait_any: no works"));
  thread_local std::vector<const engine::Work*> waiting;  // memory that is taken once
  as_errors([&] { waiting.reserve(count); });
  while (true) {
    waiting.clear();
    bool is_silent = false;
    for (std::size_t i = 0; i < count; ++i) {
      comm::Operation* const operation = operation_at(i);
      if (operation == nullptr) return i;
      operation->group->check_process();
      if (operation->path->test(*operation)) return i;
      waiting.push_back(operation->work);
      const bool is_elsewhere =
          &operation->group->engine() != &operation_at(0)->group->engine();  // of another world
      is_silent = is_silent || is_elsewhere || operation->path->ends_silently();
    }
    const Deadline look = is_silent ? Deadline::after(monotonic_clock(), silent_look) : Deadline();
    operation_at(0)->group->engine().wait_any(waiting, look);
  }
}

template <class OperationAt>
void wait_for_all(std::size_t count, const OperationAt& operation_at) {
  Status failure;
  for (std::size_t i = 0; i < count; ++i) {
    const comm::Operation* const operation = operation_at(i);
    if (operation == nullptr) continue;
    operation->group->check_process();
    wait_for_end(*operation);
    if (failure.ok()) failure = comm::status_of(*operation);
  }
  if (!failure.ok()) throw_error(std::move(failure));
}

/// Blocking calls report the end by returning.
void refuse_queue(const OperationOptions& options) {
  if (options.queue == nullptr) return;
  throw_error(Status(StatusCode::invalid_argument, "run: only what is started reports to a queue")
                  .with_hint("start it, or leave out the queue"));
}

}  // namespace

Work::Work() noexcept = default;
Work::Work(std::unique_ptr<comm::Operation> operation) noexcept
    : operation_(std::move(operation)) {}
Work::Work(Work&& other) noexcept = default;

Work& Work::operator=(Work&& other) noexcept {
  const Work former(std::move(*this));
  operation_ = std::move(other.operation_);
  return *this;
}

Work::~Work() {
  if (operation_ == nullptr) return;
  if (operation_->group->is_inherited()) {
    abandon(operation_);
    return;
  }
  const bool may_go_on = operation_->is_ordered || operation_->reports != nullptr;
  if (!may_go_on) wait_for_end(*operation_);
  comm::let_go(operation_.release());
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
  Status failure = operation_->path->make_wait(*operation_, stream);
  if (failure.ok() && operation_->work->is_over()) failure = status();
  if (!failure.ok()) throw_error(std::move(failure));
}

bool Work::wait_for(std::chrono::nanoseconds time) {
  if (operation_ == nullptr) return true;
  operation_->group->check_process();
  const Deadline deadline = Deadline::after(monotonic_clock(), time);
  if (!wait_for_end(*operation_, deadline)) return false;
  if (Status failure = status(); !failure.ok()) throw_error(std::move(failure));
  return true;
}

bool Work::test() {
  if (operation_ == nullptr) return true;
  operation_->group->check_process();
  return operation_->path->test(*operation_);
}

Status Work::status() const {
  if (operation_ == nullptr) return {};
  if (operation_->group->is_inherited()) return comm::Group::inherited();
  if (operation_->work->is_over()) return comm::status_of(*operation_);
  return Status(StatusCode::in_progress, "the operation has not ended yet")
      .with_hint("wait() waits for its end");
}

void Work::then(std::function<void(const Status& status)> function) {
  if (operation_ == nullptr || function == nullptr) {
    throw_error(Status(StatusCode::invalid_argument, "then: no operation, or no function"));
  }
  operation_->group->check_process();
  as_errors([&] { comm::call_at_end(*operation_, std::move(function)); });
}

void Work::detach(std::function<void(const Status& status)> release) {
  if (operation_ == nullptr) {
    if (release != nullptr) release({});
    return;
  }
  then(release != nullptr ? std::move(release) : [](const Status&) {});
  comm::let_go(operation_.release());  // the function holds it now
}

Received Work::received() const {
  if (operation_ != nullptr) operation_->group->check_process();
  const bool has_come = operation_ != nullptr && operation_->message &&
                        operation_->work->is_over() && operation_->work->status().ok();
  if (!has_come) {
    throw_error(Status(StatusCode::invalid_argument, "received: no message that came"));
  }
  return comm::received_of(*operation_->message, operation_->received);
}

std::size_t wait_any(std::span<Work> works) {
  return wait_for_any(works.size(), [&](std::size_t i) { return works[i].operation_.get(); });
}

std::size_t wait_any(std::span<Work* const> works) {
  return wait_for_any(works.size(), [&](std::size_t i) { return works[i]->operation_.get(); });
}

void wait_all(std::span<Work> works) {
  wait_for_all(works.size(), [&](std::size_t i) { return works[i].operation_.get(); });
}

void wait_all(std::span<Work* const> works) {
  wait_for_all(works.size(), [&](std::size_t i) { return works[i]->operation_.get(); });
}

Prepared::Prepared(std::unique_ptr<comm::PreparedCollective> operation) noexcept
    : operation_(std::move(operation)) {}
Prepared::Prepared(Prepared&& other) noexcept = default;
Prepared& Prepared::operator=(Prepared&& other) noexcept {
  const Prepared replaced(std::move(*this));
  operation_ = std::move(other.operation_);
  return *this;
}

Prepared::~Prepared() {
  if (operation_ != nullptr && operation_->group()->is_inherited()) abandon(operation_);
}

void Prepared::run() {
  operation_->group()->check_process();
  refuse_queue(operation_->collective().options);
  Status status = operation_->run();
  if (!status.ok()) throw_error(std::move(status));
}

Work Prepared::start() {
  const std::shared_ptr<comm::Group>& group = operation_->group();
  group->check_process();
  const Collective& collective = operation_->collective();
  return begin_work(group, operation_->path(), collective.kind, collective.options,
                    [&](comm::Operation& operation) { return operation_->start(operation); });
}

void Communicator::run(const Collective& collective) {
  group_->check_process();
  refuse_queue(collective.options);
  Status status = group_->run(collective);
  if (!status.ok()) throw_error(std::move(status));
}

Received Communicator::run(const Message& message) {
  group_->check_process();
  refuse_queue(message.options);
  auto received = group_->mail().run(message);
  if (!received.ok()) throw_error(received.status());
  return *received;
}

Work Communicator::start(const Collective& collective) {
  group_->check_process();
  const auto route = group_->route_of(collective);
  if (!route.ok()) throw_error(route.status());
  return begin_work(group_, route->path, collective.kind, collective.options,
                    [&](comm::Operation& operation) {
                      return route->path.start(collective, route->device, operation);
                    });
}

Work Communicator::start(const Message& message) {
  group_->check_process();
  return begin_work(
      group_, group_->mail(), comm::is_send(message) ? "send" : "recv", message.options,
      [&](comm::Operation& operation) { return group_->mail().start(message, operation); });
}

Received Communicator::sendrecv(const Message& sent, const Message& received) {
  group_->check_process();
  refuse_queue(sent.options);
  as_errors([&] {
    for (const Message* const each : {&sent, &received}) {
      Status status = comm::check(*each, group_->position());
      if (!status.ok()) throw_error(std::move(status));
    }
  });
  Work receiving = start(received);
  run(sent);
  receiving.wait();
  return receiving.received();
}

Work Communicator::start_many(std::span<const AnyOperation> operations,
                              const OperationOptions& options) {
  group_->check_process();
  comm::Batch& batch = group_->batch();
  return begin_work(group_, batch, "start_many", options, [&](comm::Operation& whole) {
    return batch.start(operations, options, whole);
  });
}

Prepared Communicator::prepare(const Collective& collective) {
  group_->check_process();
  return as_errors([&] {
    const auto route = group_->route_of(collective);
    if (!route.ok()) throw_error(route.status());
    auto prepared = route->path.prepare(group_, collective, route->device);
    if (!prepared.ok()) throw_error(prepared.status());
    return Prepared(std::move(*prepared));
  });
}

}  // namespace hocket::inline v1
