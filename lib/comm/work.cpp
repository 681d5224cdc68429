// Operations in the background, and prepared ones.
#include <algorithm>
#include <utility>
#include <vector>

#include "hocket/communicator.hpp"

#include "comm/group.hpp"

namespace hocket::comm {

struct Started {
  std::shared_ptr<Group> group;
  Operation operation;
  engine::Work work;
};

struct Planned {
  std::shared_ptr<Group> group;
  Collective collective;
  Operation operation;
};

}  // namespace hocket::comm

namespace hocket::inline v0 {
namespace {

/// Of an operation that is over.
Status status_of(const comm::Started& started) {
  const Status& status = started.work.status();
  return status.ok() ? Status() : started.group->explain(started.operation, status);
}

Work start(std::unique_ptr<comm::Started> started, const Collective& collective) {
  started->group->number(collective, started->operation);
  started->operation.task.work = &started->work;
  started->group->engine().start_in_background(started->operation.task);
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
  if (operation_ != nullptr) operation_->group->engine().wait(operation_->work);
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

std::size_t wait_any(std::span<Work> works) {
  if (works.empty()) throw_error(Status(StatusCode::invalid_argument, "wait_any: no works"));
  const auto over = std::ranges::find_if(works, [](Work& work) { return work.is_over(); });
  if (over != works.end()) return static_cast<std::size_t>(over - works.begin());
  std::vector<const engine::Work*> waiting;
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
  auto started = std::make_unique<comm::Started>();
  started->group = operation_->group;
  started->operation = operation_->operation;
  return v0::start(std::move(started), operation_->collective);
}

Work Communicator::start(const Collective& collective) {
  auto started = std::make_unique<comm::Started>();
  started->group = group_;
  Status status = group_->set_up(collective, started->operation);
  if (!status.ok()) throw_error(std::move(status));
  return v0::start(std::move(started), collective);
}

Prepared Communicator::prepare(const Collective& collective) {
  auto planned = std::make_unique<comm::Planned>();
  planned->group = group_;
  planned->collective = collective;
  Status status = group_->set_up(collective, planned->operation);
  if (!status.ok()) throw_error(std::move(status));
  return Prepared(std::move(planned));
}

}  // namespace hocket::inline v0
