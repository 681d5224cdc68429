#include "engine/engine.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>

#include "base/exception.hpp"

namespace hocket::engine {
namespace {

constexpr Duration background_spin = std::chrono::microseconds(10);
// Who starts operations often waits for them soon, and is faster alone. So the background thread
// lets so much time pass since the last start, and twice as much each time that it turns out not
// to be needed, because a thread that wakes up takes the processor of one that waits. In all it
// lets no more than the longer time pass.
constexpr Duration background_delay = std::chrono::microseconds(100);
constexpr Duration background_delay_max = std::chrono::milliseconds(1);
// Whoever starts so many, each right behind the one before, starts more: then to take them together
// is faster than each at once, and than two threads that take turns.
constexpr std::uint32_t burst_starts = 4;
// Where ranks outnumber processors, what a rank waits for needs its processor. To hand it over
// takes far less than to sleep and be woken, so that it is worth while for longer.
constexpr Duration shared_spin = std::chrono::microseconds(500);
// Other ranks that dial for a group that has ended here wait no longer than this until somebody
// looks. More often would disturb operations of other groups.
constexpr Duration answer_pause = std::chrono::milliseconds(100);

}  // namespace

/// Takes the mutex from a leader that looks again and again without a pause.
class Engine::Entry {
 public:
  explicit Entry(Engine& engine) : engine_(engine) {
    engine_.entering_.fetch_add(1, std::memory_order_relaxed);
    lock_ = std::unique_lock(engine_.mutex_);
    engine_.entering_.fetch_sub(1, std::memory_order_relaxed);
    engine_.executor_.forget_time();
    if (engine_.has_aborts_) engine_.serve_aborts();
  }
  [[nodiscard]] std::unique_lock<std::mutex>& lock() noexcept { return lock_; }

 private:
  Engine& engine_;
  std::unique_lock<std::mutex> lock_;
};

Result<std::unique_ptr<Engine>> Engine::make(std::unique_ptr<Transport> transport,
                                             const EngineOptions& options) {
  Fd wake = Fd::open_unforked([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
  if (!wake) {
    return Status(StatusCode::system_error, "no eventfd to wake a sleeping thread by")
        .with_system_error(errno);
  }
  return std::unique_ptr<Engine>(new Engine(std::move(transport), options, std::move(wake)));
}

Engine::Engine(std::unique_ptr<Transport> transport, const EngineOptions& options, Fd wake)
    : transport_(std::move(transport)),
      shares_processors_(options.shares_processors),
      burst_pause_(options.burst_pause),
      wake_(std::move(wake)),
      executor_(*transport_, options.executor),
      patience_(options.spin),
      shared_patience_(shared_spin) {}

Engine::~Engine() {
  {
    Entry entry(*this);
    is_ending_ = true;
    ring_for_background();
    wake_sleepers();
  }
  if (background_.joinable()) background_.join();
  executor_.fail_all(world_left_);
  while (executor_.active() > 0) executor_.progress();
}

void Engine::start(const Task& task) noexcept {
  const Entry entry(*this);
  executor_.start(task);
  wake_sleepers();
}

void Engine::start_in_background(const Task& task) noexcept {
  const Entry entry(*this);
  if (const Status status = have_background(); !status.ok()) executor_.fail(*task.group, status);
  executor_.start(task);
  wake_sleepers();
  ++background_starts_;
  call_background();
}

void Engine::attach(Group& group, Mailbox& mailbox) {
  const Entry entry(*this);
  executor_.attach(group, mailbox);
}

Status Engine::open_mail(Group& group, std::uint32_t peer, std::uint32_t world_rank,
                         std::uint64_t letters, std::uint64_t payloads) {
  const Entry entry(*this);
  std::array<ChannelId, 2> channels = {};
  for (const std::uint64_t lane : {letters, payloads}) {
    auto channel = open_channel(group, world_rank, lane);
    if (!channel.ok()) return channel.status();
    channels.at(lane == letters ? 0 : 1) = *channel;
  }
  if (!group.failure.ok()) return group.failure;
  executor_.open(group, peer, channels[0], channels[1]);
  wake_sleepers();
  return {};
}

void Engine::start(Group& group, const Parcel& parcel) noexcept {
  const Entry entry(*this);
  executor_.start(group, parcel);
  wake_sleepers();
}

void Engine::start_in_background(Group& group, const Parcel& parcel) noexcept {
  const Entry entry(*this);
  if (const Status status = have_background(); !status.ok()) executor_.fail(group, status);
  const bool is_next = monotonic_clock().now() - last_start_ < burst_pause_;
  starts_in_a_row_ = is_next ? starts_in_a_row_ + 1 : 1;
  const bool is_burst = starts_in_a_row_ > burst_starts && leader_ == Leader::nobody;
  executor_.start(group, parcel, is_burst ? Executor::Post::together : Executor::Post::at_once);
  last_start_ = monotonic_clock().now();
  wake_sleepers();
  ++background_starts_;
  call_background();
}

bool Engine::wait_any(std::span<const Work* const> works, Deadline deadline) {
  const auto is_over = [&] {
    return std::ranges::any_of(works, [](const Work* work) { return work->is_over(); });
  };
  Entry entry(*this);
  std::unique_lock<std::mutex>& lock = entry.lock();
  while (!is_over()) {
    if (leader_ == Leader::waiter) {
      follow(lock, deadline);
    } else {
      lead(lock, Leader::waiter, deadline, is_over);
    }
    if (!is_over() && deadline.passed(monotonic_clock().now())) break;
  }
  call_background();
  return is_over();
}

bool Engine::test(const Work& work) {
  if (work.is_over()) return true;
  const Entry entry(*this);
  if (leader_ != Leader::waiter) {
    executor_.progress();
    wake_sleepers();
  }
  answer_others();
  return work.is_over();
}

bool Engine::call_at_end(Work& work, EndNote note, EndNote& former) noexcept {
  const Entry entry(*this);
  if (work.is_over()) return false;
  former = work.at_end();
  work.call_at_end(note);
  return true;
}

void Engine::fail(Group& group, const Status& why) noexcept {
  const Entry entry(*this);
  executor_.fail(group, why);
  wake_sleepers();
  answer_others();
}

void Engine::abort(Group& group, const Status& why) noexcept {
  {
    const std::lock_guard lock(aborts_mutex_);
    if (!group.abort.ok()) return;
    group.abort = why;
    group.next_aborted = std::exchange(aborted_, &group);
    has_aborts_ = true;
  }
  static_cast<void>(have_background());  // without it, whoever calls next does it
  ring_for_background();
  const std::uint64_t call = 1;
  (void)!::write(wake_.get(), &call, sizeof call);  // who leads may sleep
}

/// With the lock.
void Engine::serve_aborts() noexcept {
  Group* next = nullptr;
  {
    const std::lock_guard lock(aborts_mutex_);
    next = std::exchange(aborted_, nullptr);
    has_aborts_ = false;
  }
  while (next != nullptr) {
    Group& group = *next;
    next = group.next_aborted;
    executor_.end(group, group.abort);
  }
  wake_sleepers();
  answer_others();
}

Status Engine::failure_of(const Group& group) {
  const Entry entry(*this);
  return group.failure;
}

std::uint64_t Engine::begin_record(const record::Recorder::Operation& operation) noexcept {
  const Entry entry(*this);
  return executor_.recorder().begin(operation);
}

void Engine::end_record(std::uint64_t record, bool is_done) noexcept {
  const Entry entry(*this);
  executor_.recorder().end(record, is_done);
}

Status Engine::loss_of(const Group& group) {
  const Entry entry(*this);
  if (leader_ != Leader::waiter) {
    executor_.progress();
    wake_sleepers();
  }
  answer_others();
  if (!group.failure.ok() || group.mailbox == nullptr) return group.failure;
  return group.mailbox->loss();
}

void Engine::wake() {
  const Entry entry(*this);
  wake_sleepers();
}

Result<ChannelId> Engine::open(Group& group, std::uint32_t peer, std::uint64_t lane) {
  const Entry entry(*this);
  return open_channel(group, peer, lane);
}

Result<ChannelId> Engine::open_channel(Group& group, std::uint32_t peer, std::uint64_t lane) {
  if (!group.failure.ok()) return group.failure;
  group.channels.emplace_back();  // first the memory, so that no channel is open and nobody's
  group.channels.pop_back();
  auto channel = transport_->open(peer, lane);
  if (channel.ok()) {
    group.channels.push_back(*channel);
  } else if (channel.status().code() != StatusCode::unsupported) {
    executor_.fail(group, channel.status());  // half open, perhaps
    wake_sleepers();
  }
  return channel;
}

void Engine::register_memory(const RegisteredMemory& memory) {
  const Entry entry(*this);
  transport_->register_memory(memory);
}

void Engine::deregister_memory(const RegisteredMemory& memory) {
  const Entry entry(*this);
  transport_->deregister_memory(memory);
}

Status Engine::register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                      std::span<const std::uint32_t> peers) {
  const Entry entry(*this);
  return transport_->register_device_memory(memory, dma_buf, peers);
}

void Engine::close(Group& group) noexcept {
  const Entry entry(*this);  // which serves an abort of it
  group.observer = nullptr;  // that it ends is no failure
  executor_.close(group, group.stays_open ? group.failure : communicator_left_);
  executor_.detach(group, communicator_left_);
  wake_sleepers();
  answer_others();
}

void Engine::close_lanes(const Group::Lanes& lanes) noexcept {
  const Entry entry(*this);
  transport_->close_lanes(lanes.first, lanes.last, not_a_member_);
  wake_sleepers();
}

template <class IsOver>
bool Engine::lead(std::unique_lock<std::mutex>& lock, Leader as, Deadline deadline,
                  IsOver&& is_over) {
  leader_ = as;
  executor_.forget_time();
  const std::uint64_t term = ++term_;
  Wait wait;
  while (true) {
    const bool moved = executor_.progress();
    if (has_aborts_) serve_aborts();
    if (moved) {
      if (followers_ > 0) changed_.notify_all();
      if (as == Leader::waiter && wait.looks > 0) note(wait);
      wait = {};
    }
    if (is_over()) break;
    if (entering_.load(std::memory_order_relaxed) > 0) {
      let_enter(lock);
      if (term != term_) return false;
    }
    if (moved) continue;
    const Instant now = monotonic_clock().now();
    executor_.note_time(now);
    if (executor_.expire(now) && followers_ > 0) changed_.notify_all();
    executor_.look_for_stalls(now);
    if (is_over() || deadline.passed(now)) break;
    if (wait.looks == 0 || transport_->has_moved()) wait.begin = now;
    if (!wait.slept) {
      wait.last_look = now;
      ++wait.looks;
    }
    if (now - wait.begin < spin(as)) {
      if (shares_processors_) {
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
        executor_.forget_time();
        if (term != term_) return false;
      }
      continue;
    }
    wait.slept = true;
    sleep(lock, deadline);
    executor_.forget_time();
    if (term != term_) return false;
  }
  resign();
  return true;
}

void Engine::note(const Wait& wait) noexcept {
  if (!executor_.cuts_through()) return patience_.note(wait.slept);
  // Parts of large operations take as long as one looks: who has a processor of its own, and slept
  // at each of them, would take a multiple of the time.
  if (shares_processors_) shared_patience_.note(wait.was_idle());
}

Duration Engine::spin(Leader as) const noexcept {
  if (as == Leader::background) return background_spin;
  if (!shares_processors_) return patience_.before_sleep();
  return executor_.cuts_through() ? shared_patience_.before_sleep() : shared_spin;
}

void Engine::sleep(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  // A thread that entered since the last look may have begun what nobody would move on.
  if (executor_.has_local_work() || !transport_->prepare_to_sleep()) return;
  const Deadline until = deadline.or_sooner(executor_.deadline()).or_sooner(executor_.next_look());
  const Duration most = until.remaining(monotonic_clock().now());
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(most);
  const timespec timeout = {.tv_sec = seconds.count(), .tv_nsec = (most - seconds).count()};
  std::array<pollfd, 2> sources = {
      {{transport_->descriptor(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  const std::uint64_t term = term_;
  ++asleep_;
  lock.unlock();
  ::ppoll(sources.data(), sources.size(), most == Duration::max() ? nullptr : &timeout, nullptr);
  lock.lock();
  --asleep_;
  if (term != term_) return;  // the call to wake up is for who leads now
  std::uint64_t calls = 0;
  if (sources[1].revents != 0) (void)!::read(wake_.get(), &calls, sizeof calls);
}

void Engine::let_enter(std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  while (entering_.load(std::memory_order_relaxed) > 0) std::this_thread::yield();
  lock.lock();
}

void Engine::resign() {
  leader_ = Leader::nobody;
  if (followers_ > 0) changed_.notify_all();
}

void Engine::follow(std::unique_lock<std::mutex>& lock, Deadline deadline) {
  ++followers_;
  if (deadline.is_never()) {
    changed_.wait(lock);
  } else {
    changed_.wait_until(lock, deadline.at());
  }
  --followers_;
}

/// After all that moves the transport: what a leader sleeps for may have been taken from it.
void Engine::wake_sleepers() {
  if (followers_ > 0) changed_.notify_all();
  if (asleep_ == 0) return;
  const std::uint64_t call = 1;
  (void)!::write(wake_.get(), &call, sizeof call);
}

Status Engine::have_background() noexcept {
  if (has_background_) return {};
  try {
    const std::lock_guard lock(background_mutex_);
    if (!background_.joinable()) background_ = std::thread([this] { run_in_background(); });
    has_background_ = true;
    return {};
  } catch (...) {
    return status_of_exception();
  }
}

void Engine::call_background() {
  answer_others();
  if (leader_ != Leader::nobody || executor_.active() == 0) return;
  // There is one where an operation was begun in the background. Others go on when someone waits.
  if (!have_background().ok()) return;
  ring_for_background();
  wake_sleepers();  // it may sleep as a leader still that it is no more
}

/// Without a thread for it, others are told when somebody waits here.
void Engine::answer_others() noexcept {
  if (!executor_.has_ended_groups() || answers_others_ || !have_background().ok()) return;
  answers_others_ = true;
  ring_for_background();
}

/// Once is enough until it is heard: a thread that was woken may have no processor yet, and to wake
/// it again takes a call of the system each time.
void Engine::ring_for_background() {
  if (is_rung_.exchange(true)) return;
  { const std::lock_guard lock(bell_mutex_); }  // it waits by now, or sees that it was rung
  bell_.notify_one();
}

/// False: it was not rung, but other ranks may want an answer.
bool Engine::wait_for_bell() {
  std::unique_lock lock(bell_mutex_);
  const auto is_rung = [this] { return is_rung_.load(); };
  if (!answers_others_) {
    bell_.wait(lock, is_rung);
  } else if (!bell_.wait_for(lock, answer_pause, is_rung)) {
    return false;
  }
  is_rung_ = false;
  return true;
}

/// Keeps away from the mutex while others are at work, who hold it nearly always.
void Engine::run_in_background() {
  bool is_alone = false;  // with what others start, and do not wait for
  Duration delay = background_delay;
  while (true) {
    const bool is_wanted = wait_for_bell();
    if (has_aborts_) const Entry entry(*this);
    if (is_wanted && !is_alone) let_others_wait(delay);
    is_alone = false;
    delay = std::min(2 * delay, background_delay_max);       // unless it turns out to be needed
    if (leader_ == Leader::waiter && !is_ending_) continue;  // who calls at its end
    std::unique_lock lock(mutex_);
    if (is_ending_) return;
    if (leader_ != Leader::nobody) continue;
    // Where it can't sleep until others come, it looks after them now and then.
    const bool stays = answers_others_ && transport_->descriptor() >= 0;
    if (answers_others_ && !stays) executor_.progress();
    const auto is_idle = [&] { return executor_.active() == 0 && !stays; };
    const std::uint32_t starts = background_starts_;
    const auto is_disturbed = [&] { return background_starts_ - starts > burst_starts; };
    const bool has_work = executor_.active() > 0;
    const bool has_led = lead(lock, Leader::background, {},
                              [&] { return is_ending_ || is_idle() || is_disturbed(); });
    if (executor_.has_ended_groups()) answers_others_ = true;
    if (has_work && has_led) {
      is_alone = executor_.active() == 0 && !is_disturbed();
      delay = background_delay;
    }
    if (is_disturbed()) ring_for_background();
  }
}

/// Returns once nothing was started for so long, or after background_delay_max.
void Engine::let_others_wait(Duration delay) const {
  for (Duration slept = {}; slept < background_delay_max && !is_ending_; slept += delay) {
    const std::uint32_t starts = background_starts_;
    std::this_thread::sleep_for(delay);
    if (background_starts_ == starts) return;
  }
}

}  // namespace hocket::engine
