// Operations of a communicator: at once, in the background, and prepared ones.
#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"

#include "base/exception.hpp"
#include "comm/group.hpp"
#include "comm/operation.hpp"
#include "comm/path.hpp"
#include "comm/reports.hpp"

namespace hocket::inline v0 {
namespace {

/// How often wait_any looks at operations that end silently.
constexpr Duration silent_look = std::chrono::microseconds(50);

bool wait_for_end(const comm::Operation& operation, Deadline deadline = {}) {
  return operation.path->wait(operation, deadline);
}

/// Starts an operation by begin(). Throws if that fails; then nothing is in flight.
template <class Name, class Begin>
Work begin_work(const std::shared_ptr<comm::Group>& group, comm::Path& path, const Name& name,
                const Options& options, const Begin& begin) {
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

/// Blocking calls report the end by returning.
void refuse_queue(const Options& options) {
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
  std::swap(operation_, other.operation_);
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
  Status status = operation_->path->make_wait(*operation_, stream);
  if (!status.ok()) throw_error(std::move(status));
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
  return operation_->path->test(*operation_);
}

Status Work::status() const {
  if (operation_ == nullptr) return {};
  if (operation_->group->is_inherited()) return comm::Group::inherited();
  if (operation_->work->is_over()) return comm::status_of(*operation_);
  return Status(StatusCode::in_progress, "the operation has not ended yet")
      .with_hint("wait() waits for its end");
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
  if (works.empty()) throw_error(Status(StatusCode::invalid_argument, "wait_any: no works"));
  thread_local std::vector<const engine::Work*> waiting;  // memory that is taken once
  as_errors([&] { waiting.reserve(works.size()); });
  while (true) {
    const auto over = std::ranges::find_if(works, [](Work& work) { return work.is_over(); });
    if (over != works.end()) return static_cast<std::size_t>(over - works.begin());
    waiting.clear();
    bool is_silent = false;
    for (const Work& work : works) {
      waiting.push_back(work.operation_->work);
      is_silent = is_silent || work.operation_->path->ends_silently();
    }
    const Deadline look = is_silent ? Deadline::after(monotonic_clock(), silent_look) : Deadline();
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
      group_, group_->mail(), message.is_sent ? "send" : "recv", message.options,
      [&](comm::Operation& operation) { return group_->mail().start(message, operation); });
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

}  // namespace hocket::inline v0
