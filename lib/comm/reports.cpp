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

int Reports::fd() noexcept {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(is_watched_, true) && first_ != nullptr) announce();
  return event_.get();
}

void Reports::announce() const noexcept {
  const std::uint64_t one = 1;
  (void)!::write(event_.get(), &one, sizeof one);
}

/// The world that waiting threads no longer lead. It is destroyed after the mutex is released,
/// because waking those threads takes the engine's lock, and the world may end here.
struct Reports::Former {
  std::shared_ptr<Context> world = {};
  bool must_wake = false;

  Former() = default;
  Former(const Former&) = delete;
  Former& operator=(const Former&) = delete;
  ~Former() {
    if (must_wake) world->engine->wake();
  }
};

/// Call it with the mutex held; `former` must outlive that lock.
void Reports::lead(std::shared_ptr<Context> world, Former& former) noexcept {
  former.must_wake = world_ != nullptr && !bells_.empty();
  ring();
  former.world = std::exchange(world_, std::move(world));
}

void Reports::ring() noexcept {
  for (engine::Work* const each : bells_) each->finish({});
  bells_.clear();
}

void Reports::expect(const std::shared_ptr<Context>& world, bool ends_silently) {
  Former former;
  const std::lock_guard lock(mutex_);
  bells_.reserve(bells_.size() + 1);
  const bool must_look = ends_silently || (world_ != nullptr && (must_look_ || world_ != world));
  if (world_ != world || must_look != must_look_) lead(world, former);
  must_look_ = must_look;
  ++expected_;
  changed_.notify_all();
}

void Reports::expect_no_more() noexcept {
  Former former;
  const std::lock_guard lock(mutex_);
  if (--expected_ == 0) lead(nullptr, former);
  changed_.notify_all();
}

void Reports::note(void* operation, StatusCode /*status*/) noexcept {
  static_cast<void>(publish(*static_cast<Operation*>(operation)));
}

bool Reports::publish(Operation& operation) noexcept {
  if (operation.until_reported.fetch_sub(1) > 1) return false;
  operation.reports->push(operation);
  return true;
}

/// May be called under an engine's lock, so it waits for nobody.
void Reports::push(Operation& operation) noexcept {
  const std::lock_guard lock(mutex_);
  operation.next = nullptr;
  if (first_ == nullptr && is_watched_) announce();
  *(last_ == nullptr ? &first_ : &last_->next) = &operation;
  last_ = &operation;
  ring();
  changed_.notify_one();
}

Operation* Reports::pop(Former& former) noexcept {
  Operation* const operation = first_;
  if (operation == nullptr) return nullptr;
  first_ = operation->next;
  if (--expected_ == 0) lead(nullptr, former);
  if (first_ != nullptr) return operation;
  last_ = nullptr;
  std::uint64_t count = 0;
  if (is_watched_) (void)!::read(event_.get(), &count, sizeof count);
  return operation;
}

Operation* Reports::take(Deadline deadline) {
  Former former;
  std::unique_lock lock(mutex_);
  for (bool has_looked = false;; has_looked = true) {
    if (Operation* const operation = pop(former)) return operation;
    const bool may_look = !has_looked && expected_ > 0;  // also without time, things move on
    if (!may_look && deadline.passed(monotonic_clock().now())) return nullptr;
    wait(lock, deadline);
  }
}

/// Waits in the engine if an operation is expected, else for one to be announced.
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

engine::EndNote note_of(Context& context, Operation* operation, const OperationOptions& options) {
  if (options.queue != nullptr) return {.function = Reports::note, .context = operation};
  return context.callbacks.note_for(options);
}

}  // namespace hocket::comm
