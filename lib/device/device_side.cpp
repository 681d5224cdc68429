#include "device/device_side.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/exception.hpp"

namespace hocket::device {
namespace {

// How long a driver looks again and again before it sleeps in between.
constexpr Duration spin = std::chrono::microseconds(100);
constexpr Duration shortest_rest = std::chrono::microseconds(20);
constexpr Duration longest_rest = std::chrono::milliseconds(1);
/// How often an offload is asked for errors.
constexpr Duration check_interval = std::chrono::milliseconds(5);
/// Of the background, where only kernels are under way: nobody waits for them.
constexpr Duration background_interval = std::chrono::milliseconds(5);
/// For an offload to end what is in streams behind something else, once an operation has failed.
constexpr Duration abort_grace = std::chrono::seconds(1);
/// For the other ranks to leave a communicator, too: at least, and while they may be behind what
/// their streams have. Ranks that leave two in different orders wait for each other no longer.
constexpr Duration farewell = std::chrono::seconds(2);
constexpr Duration longest_farewell = std::chrono::seconds(10);
constexpr Duration background_linger = std::chrono::milliseconds(100);
/// Under way at once: what is started beyond waits.
constexpr std::size_t operations_max = 1024;

}  // namespace

DeviceSide::DeviceSide(const Runtime& runtime, HostSide& host, DeviceSideOptions options)
    : runtime_(runtime), host_(host), options_(std::move(options)) {}

void DeviceSide::drain() {
  Lock lock(mutex_);
  drive_until(lock, [&] { return is_idle(); });
}

DeviceSide::~DeviceSide() {
  drain();
  {
    const Lock lock(mutex_);
    is_ending_ = true;
    background_bell_.notify_all();
  }
  if (background_.joinable()) background_.join();
  if (aborter_.joinable()) aborter_.join();
  if (device_ < 0) return;
  leave();
  const OnDevice here(runtime_, device_);
  way_.offload = nullptr;
  if (staged_ != nullptr) host_.engine().deregister_memory(staged_->slots());
  staged_ = nullptr;
  stream_ = {};
  all_.clear();
}

Result<Operation*> DeviceSide::start(const Collective& collective, int device, Deadline deadline,
                                     Order order, bool is_awaited) {
  Lock lock(mutex_);
  if (!failure_.ok()) return failure_;
  const OnDevice here(runtime_, device);
  if (Status status = settle(device, deadline); !status.ok()) return status;
  drive_until(lock, [&] {
    return offloaded_.size() + (staged_ == nullptr ? 0 : staged_->operations()) < operations_max;
  });
  const bool is_offloaded = way_.offload != nullptr && way_.offload->can(collective);
  if (is_offloaded) {  // behind what is staged
    drive_until(lock, [&] { return last_staged_ == nullptr || last_staged_->work.is_over(); });
  }
  if (!failure_.ok()) return failure_;
  reap();
  auto operation = take(collective, deadline);
  if (!operation.ok()) {
    fail(operation.status());
    return operation;
  }
  try {
    host_.note_call(**operation);
    Status status = is_offloaded ? launch(**operation, order) : stage(**operation);
    if (!status.ok()) {
      fail(status);
      drive_until(lock, [&] { return has_let_go(); });
      (*operation)->work.call_at_end({});  // it has never begun
      (*operation)->work.finish(status);
      recycle(**operation);
      return status;
    }
    if (!is_awaited) ring(is_offloaded ? Urgency::none : Urgency::soon);
  } catch (...) {  // it may be under way, but the caller will not ask for it
    (*operation)->work.call_at_end({});
    (*operation)->is_released = true;
    throw;
  }
  return *operation;
}

/// On a device, once. What goes wrong is told to the others, which wait for this rank.
Status DeviceSide::settle(int device, Deadline deadline) {
  if (device_ == device) return {};
  const int bound = device_ >= 0 ? device_ : split_on_;
  if (bound >= 0 && bound != device) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("memory of device {}, where this communicator's is of device {}",
                              device, bound))
        .with_hint("split the communicator, and use one for each device");
  }
  device_ = device;
  Status status = choose_way(deadline);
  if (!status.ok()) fail(status);
  return status;
}

/// At the first operation: the one that all ranks take.
Status DeviceSide::choose_way(Deadline deadline) {
  auto stream = make_stream(runtime_);
  if (!stream.ok()) return stream.status();
  stream_ = std::move(*stream);
  if (way_.offload != nullptr) return host_.watch();  // a split has made it
  auto way = agree_on_way(options_.offload, runtime_, device_, options_.host, options_.position,
                          host_, {.deadline = deadline, .side = &host_});
  if (!way.ok()) return way.status();
  way_ = std::move(*way);
  return {};
}

Result<Operation*> DeviceSide::take(const Collective& collective, Deadline deadline) {
  if (free_.empty()) {
    auto made = std::make_unique<Operation>();
    for (Event* const each : {&made->ready, &made->done}) {
      auto event = make_event(runtime_);
      if (!event.ok()) return event.status();
      *each = std::move(*event);
    }
    free_.push_back(made.get());
    all_.push_back(std::move(made));
  }
  Operation& it = *free_.back();
  free_.pop_back();
  it.counts.assign(collective.counts.begin(), collective.counts.end());
  it.counts_from.assign(collective.counts_from.begin(), collective.counts_from.end());
  it.pieces.assign(collective.pieces.begin(), collective.pieces.end());
  it.collective = collective;
  it.collective.counts = it.counts;
  it.collective.counts_from = it.counts_from;
  it.collective.pieces = it.pieces;
  it.deadline = deadline;
  it.number = ++operations_;
  it.is_offloaded = it.is_released = it.has_ready = false;
  it.work.call_at_end({collective.options.on_end, collective.options.on_end_context});
  it.work.begin();
  return &it;
}

void DeviceSide::recycle(Operation& operation) {
  if (!operation.is_offloaded) std::erase(staged_operations_, &operation);
  if (last_staged_ == &operation) last_staged_ = nullptr;
  if (last_offloaded_ == &operation) last_offloaded_ = nullptr;
  free_.push_back(&operation);
}

/// Whoever drives.
template <class IsOver>
void DeviceSide::drive_until(Lock& lock, IsOver&& is_over) {
  while (!is_over()) {
    if (is_driven_) {
      changed_.wait_for(lock, longest_rest);
    } else {
      drive(lock, {}, is_over);
    }
  }
}

/// Staged operations that are over, and that nobody asks for.
void DeviceSide::reap() {
  for (std::size_t i = staged_operations_.size(); i-- > 0;) {
    Operation& each = *staged_operations_[i];
    if (each.is_released && each.work.is_over()) recycle(each);
  }
}

void DeviceSide::finish_offloaded(const Status& status) {
  Operation& oldest = *offloaded_.front();
  offloaded_.pop_front();
  host_.end_record(oldest.record, status.ok());
  oldest.work.finish(status);
  if (oldest.is_released) recycle(oldest);
}

Status DeviceSide::order_behind(void* stream, const Event& event, void* other) {
  Status status = record(runtime_, event, other);
  return status.ok() ? hold_up(runtime_, stream, event) : status;
}

Status DeviceSide::launch(Operation& operation, Order order) {
  const std::optional<Stream>& users = operation.collective.options.stream;
  const bool is_beside = !users || order == Order::beside;
  void* const stream = is_beside ? stream_.get() : users->handle;
  if (users && is_beside) {
    Status status = order_behind(stream, operation.ready, users->handle);
    if (!status.ok()) return status;
  }
  offloaded_until_ = std::max(offloaded_until_, operation.deadline.at());
  const Instant now = monotonic_clock().now();
  // What is over here the others have most likely called; who has not does not answer.
  const Operation& oldest = offloaded_.empty() ? operation : *offloaded_.front();
  host_.compare_call(oldest.number - 1, now);
  operation.record = host_.begin_record(operation, now);
  Status status = described([&] {
    Status launched = way_.offload->launch(operation.collective, stream,
                                           {.deadline = operation.deadline, .side = &host_});
    return launched.ok() ? record(runtime_, operation.done, stream) : launched;
  });
  if (!status.ok()) {
    host_.end_record(operation.record, false);
    return status;
  }
  operation.is_offloaded = true;
  operation.stream = stream;
  operation.way = options_.offload->name;
  offloaded_.push_back(&operation);
  last_offloaded_ = &operation;
  return {};
}

/// At the first operation that is staged, which it is on all ranks.
Status DeviceSide::begin_staging(Deadline deadline) {
  auto made = Staged::make(runtime_, host_, options_.position, options_.slot_bytes);
  if (!made.ok()) return made.status();
  staged_ = std::move(*made);
  host_.engine().register_memory(staged_->slots());
  if (way_.offload != nullptr) return {};  // which does all that only moves
  auto slots = agree_on_device_slots(runtime_, static_cast<std::size_t>(staged_->slots().bytes),
                                     options_.allows_gpudirect, options_.position, host_, deadline);
  if (!slots.ok()) return slots.status();
  staged_->use(std::move(*slots));
  return {};
}

Status DeviceSide::stage(Operation& operation) {
  if (staged_ == nullptr) {
    if (Status status = begin_staging(operation.deadline); !status.ok()) return status;
  }
  const bool is_direct = staged_->place_of(operation.collective.kind) == SlotPlace::device;
  operation.way = is_direct ? "GPUDirect" : "staging";
  if (const auto& users = operation.collective.options.stream) {
    Status status = order_behind(stream_.get(), operation.ready, users->handle);
    if (!status.ok()) return status;
    operation.has_ready = true;
  }
  if (last_offloaded_ != nullptr) {
    Status status = hold_up(runtime_, stream_.get(), last_offloaded_->done);
    if (!status.ok()) return status;
    operation.has_ready = true;
  }
  if (operation.has_ready) {
    Status status = record(runtime_, operation.ready, stream_.get());
    if (!status.ok()) return status;
  }
  staged_->push(operation);
  staged_operations_.push_back(&operation);
  last_staged_ = &operation;
  return {};
}

/// Of what is staged no stream can wait: as long as a stream is held up, many calls of a program
/// wait for it, and with some of them the driver lets no other thread begin the copies that would
/// end it.
Status DeviceSide::make_wait(Operation& operation, void* stream) {
  {
    const Lock lock(mutex_);
    const bool is_behind = operation.is_offloaded && operation.stream == stream;
    if (is_behind || operation.work.is_over()) return {};
    if (operation.is_offloaded) {
      const OnDevice here(runtime_, device_);
      return hold_up(runtime_, stream, operation.done);
    }
  }
  wait(operation);
  return {};
}

bool DeviceSide::wait(Operation& operation, Deadline deadline) {
  if (operation.work.is_over()) return true;
  Lock lock(mutex_, std::defer_lock);
  if (deadline.is_never()) lock.lock();
  while (!lock && !lock.try_lock()) {  // for as long as an offload needs to reach other ranks
    if (deadline.passed(monotonic_clock().now())) return operation.work.is_over();
    std::this_thread::sleep_for(shortest_rest);
  }
  ++wanting_;
  if (is_driven_) ring(Urgency::soon);
  while (!operation.work.is_over() && !deadline.passed(monotonic_clock().now())) {
    if (!is_driven_) {
      drive(lock, deadline, [&] { return operation.work.is_over(); });
    } else {
      changed_.wait_for(lock, longest_rest);
    }
  }
  --wanting_;
  if (!is_idle()) ring(Urgency::soon);
  return operation.work.is_over();
}

bool DeviceSide::test(Operation& operation) {
  if (operation.work.is_over()) return true;
  Lock lock(mutex_, std::try_to_lock);
  if (lock && !is_driven_) {
    const OnDevice here(runtime_, device_);
    if (progress()) host_.engine().wake();
  }
  return operation.work.is_over();
}

bool DeviceSide::call_at_end(Operation& operation, engine::EndNote note, engine::EndNote& former) {
  if (operation.work.is_over()) return false;  // the lock may be held long
  const Lock lock(mutex_);
  if (operation.work.is_over()) return false;
  former = operation.work.at_end();
  operation.work.call_at_end(note);
  return true;
}

void DeviceSide::release(Operation& operation) {
  const Lock lock(mutex_);
  operation.is_released = true;
  if (operation.work.is_over()) recycle(operation);
}

Status DeviceSide::split(int color, int key, DeviceSide* child, Deadline deadline) {
  Lock lock(mutex_);
  if (way_.offload == nullptr || device_ < 0) return {};
  drive_until(lock, [&] { return is_idle(); });
  if (!failure_.ok()) return failure_;
  const OnDevice here(runtime_, device_);
  const Position position = child != nullptr ? child->options_.position : Position{};
  auto part = way_.offload->split(color, key, position, {.deadline = deadline, .side = &host_});
  if (!part.ok()) {
    fail(part.status());
    return failure_;
  }
  if (child == nullptr) return {};
  child->way_.offload = std::move(*part);
  child->split_on_ = device_;
  return {};
}

void* DeviceSide::announce(void* memory, std::size_t bytes) {
  const Lock lock(mutex_);
  if (way_.offload == nullptr || !failure_.ok()) return nullptr;
  const OnDevice here(runtime_, device_);
  return way_.offload->announce(memory, bytes);
}

void DeviceSide::forget(void* announced) {
  if (announced == nullptr) return;
  Lock lock(mutex_);
  drive_until(lock, [&] { return offloaded_.empty(); });
  if (!failure_.ok()) return;
  const OnDevice here(runtime_, device_);
  way_.offload->forget(announced);
}

bool DeviceSide::progress() {
  const Instant now = monotonic_clock().now();
  const bool seen = failure_.ok() ? watch(now) : end_offloaded();
  const bool moved = staged_ != nullptr && staged_->progress(now);
  if (moved && !staged_->failure().ok()) fail(Status(staged_->failure()));
  return seen || moved;
}

/// Offloaded operations: those that are over, and whether the others still can be.
bool DeviceSide::watch(Instant now) {
  bool moved = false;
  while (!offloaded_.empty()) {
    const auto over = is_over(runtime_, offloaded_.front()->done);
    if (!over.ok()) {
      fail(over.status());
      return true;
    }
    if (!*over) break;
    finish_offloaded({});
    moved = true;
  }
  if (offloaded_.empty() || now < next_check_) return moved;
  next_check_ = now + check_interval;
  const Status status = check(now);
  if (status.ok()) return moved;
  fail(status);
  return true;
}

/// Whether what is offloaded can still end well.
Status DeviceSide::check(Instant now) {
  if (Status status = way_.offload->check(); !status.ok()) return status;
  for (const Operation* const each : offloaded_) {
    if (!each->deadline.passed(now)) continue;
    return Status(StatusCode::timeout,
                  fmt::format("the kernels of #{} were not over in time", each->number))
        .with_hint("a rank may not have called it, or the stream may be held up");
  }
  host_.compare_call(offloaded_.front()->number, now);
  return host_.loss(now);
}

/// Not before the others are done: to them, a rank that is gone is one that failed. What this rank
/// has done may be under way there until its deadline.
void DeviceSide::leave() {
  if (way_.offload == nullptr || !failure_.ok()) return;
  engine::Work work;
  work.begin();
  const Instant now = monotonic_clock().now();
  const Deadline deadline(std::clamp(offloaded_until_, now + farewell, now + longest_farewell));
  const Status status = host_.start({.kind = CollectiveKind::barrier}, 0, work, deadline);
  if (status.ok()) host_.engine().wait(work);
}

/// An offload can't end kernels before what they are behind has ended, and that may wait for what
/// we do next: so that it has a thread.
void DeviceSide::fail(const Status& why) {
  if (!failure_.ok()) return;
  failure_ = why;
  failed_at_ = monotonic_clock().now();
  host_.fail(why);
  if (staged_ != nullptr) staged_->fail(why, failed_at_);
  if (way_.offload == nullptr) return;
  aborter_ = std::thread([this] {
    runtime_->set_device(device_);
    way_.offload->abort();
    is_aborted_ = true;
  });
}

/// Whether what failed touches no memory any more; or will not before long.
bool DeviceSide::has_let_go() const noexcept {
  return !aborter_.joinable() || is_aborted_ || monotonic_clock().now() - failed_at_ >= abort_grace;
}

bool DeviceSide::end_offloaded() {
  if (offloaded_.empty() || !has_let_go()) return false;
  while (!offloaded_.empty()) finish_offloaded(failure_);
  return true;
}

/// Until `is_over` says so, or the deadline. Begins and ends with the lock, rests without.
template <class IsOver>
void DeviceSide::drive(Lock& lock, Deadline deadline, IsOver&& is_over) {
  is_driven_ = true;
  {
    const OnDevice here(runtime_, device_);
    Instant idle_since = Instant::max();
    while (!is_over()) {
      if (progress()) {
        idle_since = Instant::max();
        host_.engine().wake();
        changed_.notify_all();
        continue;
      }
      const Instant now = monotonic_clock().now();
      if (deadline.passed(now)) break;
      idle_since = std::min(idle_since, now);
      rest(lock, idle_since, deadline);
    }
  }
  is_driven_ = false;
  changed_.notify_all();
}

/// Longer and longer, while nothing happens.
void DeviceSide::rest(Lock& lock, Instant idle_since, Deadline deadline) {
  const Instant now = monotonic_clock().now();
  const engine::Work* const hosts = staged_ == nullptr ? nullptr : staged_->waits_for();
  if (hosts != nullptr && offloaded_.empty()) {
    const Deadline latest = staged_->deadline();
    bell_.begin();
    lock.unlock();
    const std::array<const engine::Work*, 2> works = {hosts, &bell_};
    host_.engine().wait_any(works, deadline.or_sooner(latest));
    lock.lock();
    if (!bell_.is_over()) bell_.finish({});
    return;
  }
  const Duration idle = now - idle_since;
  lock.unlock();
  if (idle < spin) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::clamp(idle / 32, shortest_rest, longest_rest));
  }
  lock.lock();
}

/// There is something to do, or another thread wants to do it. To wake the background takes longer
/// than to launch a kernel: so it rests for a while before it sleeps.
void DeviceSide::ring(Urgency urgency) {
  if (!bell_.is_over()) {
    bell_.finish({});
    host_.engine().wake();
  }
  busy_until_ = monotonic_clock().now() + background_linger;
  if (background_state_ == Background::absent) {
    background_state_ = Background::awake;
    background_ = std::thread([this] { run_in_background(); });
  } else if (background_state_ == Background::asleep ||
             (background_state_ == Background::resting && urgency == Urgency::soon)) {
    background_bell_.notify_one();
  }
}

void DeviceSide::run_in_background() {
  Lock lock(mutex_);
  // For good: to go back to what a thread has at first would begin the first device, too.
  runtime_->set_device(device_);
  const auto is_staging = [&] { return staged_ != nullptr && !staged_->is_idle(); };
  while (!is_ending_) {
    if (is_staging() && !is_driven_ && wanting_ == 0) {
      drive(lock, {}, [&] { return is_ending_ || wanting_ > 0 || !is_staging(); });
      continue;
    }
    if (is_idle() && monotonic_clock().now() > busy_until_) {
      background_state_ = Background::asleep;
      background_bell_.wait(lock);
    } else {
      background_state_ = Background::resting;
      background_bell_.wait_for(lock, background_interval);
    }
    background_state_ = Background::awake;
    if (is_driven_ || offloaded_.empty()) continue;
    const OnDevice here(runtime_, device_);
    if (progress()) host_.engine().wake();
  }
}

}  // namespace hocket::device
