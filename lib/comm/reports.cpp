#include "comm/reports.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "comm/context.hpp"

namespace hocket::comm {
namespace {

/// How long a thread waits in one engine before it looks for what others have ended.
constexpr Duration look = std::chrono::milliseconds(1);

}  // namespace

Result<std::unique_ptr<Reports>> Reports::make() {
  Fd event = Fd::open_unforked([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (event) return std::unique_ptr<Reports>(new Reports(std::move(event)));
  return Status(StatusCode::system_error, "no eventfd for a completion queue")
      .with_system_error(errno);
}

void Reports::expect(const std::shared_ptr<Context>& world, bool ends_silently) {
  const std::lock_guard lock(mutex_);
  bells_.reserve(bells_.size() + 1);
  must_look_ = ends_silently || (world_ != nullptr && (must_look_ || world_ != world));
  world_ = world;
  ++expected_;
  changed_.notify_all();
}

void Reports::expect_no_more() noexcept {
  const std::lock_guard lock(mutex_);
  if (--expected_ == 0) world_ = nullptr;  // whose operation the caller still has
  changed_.notify_all();
}

void Reports::note(void* operation, StatusCode /*status*/) noexcept {
  publish(*static_cast<Operation*>(operation));
}

void Reports::publish(Operation& operation) noexcept {
  if (operation.until_reported.fetch_sub(1) == 1) operation.reports->push(operation);
}

/// Perhaps under an engine's lock: it waits for nobody.
void Reports::push(Operation& operation) noexcept {
  const std::lock_guard lock(mutex_);
  operation.next = nullptr;
  if (first_ == nullptr) {
    const std::uint64_t one = 1;
    (void)!::write(event_.get(), &one, sizeof one);
  }
  *(last_ == nullptr ? &first_ : &last_->next) = &operation;
  last_ = &operation;
  for (engine::Work* const each : bells_) each->finish({});
  bells_.clear();
  changed_.notify_one();
}

Operation* Reports::pop() noexcept {
  Operation* const operation = first_;
  if (operation == nullptr) return nullptr;
  first_ = operation->next;
  if (--expected_ == 0) world_ = nullptr;  // which the operation holds
  if (first_ != nullptr) return operation;
  last_ = nullptr;
  std::uint64_t count = 0;
  (void)!::read(event_.get(), &count, sizeof count);
  return operation;
}

Operation* Reports::take(Deadline deadline) {
  std::unique_lock lock(mutex_);
  for (bool has_looked = false;; has_looked = true) {
    if (Operation* const operation = pop()) return operation;
    const bool may_look = !has_looked && expected_ > 0;  // also without time, things move on
    if (!may_look && deadline.passed(monotonic_clock().now())) return nullptr;
    wait(lock, deadline);
  }
}

/// Leads the engine, if there is something to wait for.
void Reports::wait(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  if (expected_ == 0) {
    if (deadline.is_never()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, deadline.at());
    }
    return;
  }
  engine::Work bell;
  bell.begin();
  bells_.push_back(&bell);
  std::shared_ptr<Context> world = world_;
  const Deadline next =
      must_look_ ? deadline.or_sooner(Deadline::after(monotonic_clock(), look)) : deadline;
  lock.unlock();
  world->engine->wait(bell, next);
  lock.lock();
  std::erase(bells_, &bell);
  lock.unlock();
  world = nullptr;  // perhaps the last that holds it
  lock.lock();
}

bool Reports::expects_any() {
  const std::lock_guard lock(mutex_);
  return expected_ > 0;
}

Callbacks::Note note_of(Context& context, Operation& operation, const Options& options) {
  if (options.queue != nullptr) return {.function = Reports::note, .context = &operation};
  return context.callbacks.note_for(options);
}

}  // namespace hocket::comm
