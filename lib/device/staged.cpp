#include "device/staged.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace hocket::device {
namespace {

/// For copies that wait behind something else in the user's stream to end, once an operation has
/// failed.
constexpr Duration copies_grace = std::chrono::seconds(1);

Status copy(const Runtime& runtime, const Block& block, std::byte* slot, bool is_down,
            const OwnStream& stream) {
  std::byte* const there = slot + block.slot_offset;
  std::byte* const to = is_down ? there : block.user;
  const std::byte* const from = is_down ? block.user : there;
  if (block.rows == 1) {
    return runtime.check(runtime->copy(to, from, block.row_bytes, stream.get()),
                         is_down ? "copying from device memory" : "copying to device memory");
  }
  const std::size_t to_pitch = is_down ? block.row_bytes : block.user_pitch;
  const std::size_t from_pitch = is_down ? block.user_pitch : block.row_bytes;
  return runtime.check(
      runtime->copy_rows(to, to_pitch, from, from_pitch, block.row_bytes, block.rows, stream.get()),
      is_down ? "copying rows from device memory" : "copying rows to device memory");
}

}  // namespace

Result<std::unique_ptr<Staged>> Staged::make(const Runtime& runtime, HostSide& host,
                                             const Position& position, std::size_t slot_bytes) {
  std::unique_ptr<Staged> made(new Staged(runtime, host, position, slot_bytes));
  if (Status status = made->prepare(); !status.ok()) return status;
  return made;
}

Staged::Staged(const Runtime& runtime, HostSide& host, const Position& position,
               std::size_t slot_bytes)
    : runtime_(runtime), host_(host), position_(position), slot_bytes_(slot_bytes) {}

Status Staged::prepare() {
  for (OwnStream* const each : {&down_stream_, &up_stream_}) {
    auto stream = make_stream(runtime_);
    if (!stream.ok()) return stream.status();
    *each = std::move(*stream);
  }
  auto memory = Memory::make(runtime_, MemoryKind::pinned, slot_bytes_ * slots_max);
  if (!memory.ok()) return memory.status();
  memory_ = std::move(*memory);
  for (std::size_t i = 0; i < slots_max; ++i) {
    for (Event* const each : {&slots_.at(i).down, &slots_.at(i).up}) {
      auto event = make_event(runtime_);
      if (!event.ok()) return event.status();
      *each = std::move(*event);
    }
  }
  return {};
}

void Staged::push(Operation& operation) {
  waiting_.push_back(&operation);
  is_failing_ = is_failing_ || !failure_.ok();
}

bool Staged::progress(Instant now) {
  if (is_failing_) return end_failed(now);
  if (is_idle()) return false;
  bool moved = false;
  while (!is_failing_ && step()) moved = true;
  if (!is_failing_ && !moved) check_deadline(now);
  return moved || is_failing_;
}

/// The last stage first, so that slots are free for the first.
bool Staged::step() {
  bool moved = false;
  for (const auto stage : {&Staged::retire, &Staged::send_up, &Staged::start_host,
                           &Staged::send_down, &Staged::begin_next}) {
    if (!is_failing_) moved = (this->*stage)() || moved;
  }
  return moved;
}

const engine::Work* Staged::waits_for() const noexcept {
  if (is_failing_) return nullptr;
  const bool copies = retired_ < up_ || started_ < down_;
  if (copies) return nullptr;
  if (is_agreeing_) return &agreement_;
  return up_ < started_ ? &slot(up_).host : nullptr;
}

/// One operation's copies to the host begin when all of the one before are on their way back: it
/// may be what they bring.
bool Staged::begin_next() {
  if (is_agreeing_) return end_agreement();
  if (waiting_.empty() || windows_left_ > 0 || up_ != down_) return false;
  Operation& operation = *waiting_.front();
  waiting_.pop_front();
  running_.push_back({.operation = &operation});
  if (Status status = begin(operation); !status.ok()) fail(status, {});
  return true;
}

Status Staged::begin(Operation& operation) {
  if (up_ > 0) {
    Status status = hold_up(runtime_, down_stream_.get(), slot(up_ - 1).up);
    if (!status.ok()) return status;
  }
  if (operation.has_ready) {
    // Also where nothing goes down: what comes up must not come before it is expected.
    for (const OwnStream* const each : {&down_stream_, &up_stream_}) {
      Status status = hold_up(runtime_, each->get(), operation.ready);
      if (!status.ok()) return status;
    }
  }
  if (is_largest_part_private(operation.collective)) return agree(operation);
  plan(operation, largest_part(operation.collective));
  return {};
}

Status Staged::agree(Operation& operation) {
  agreed_ = largest_part(operation.collective);
  Collective most = {.kind = CollectiveKind::all_reduce,
                     .in = &agreed_,
                     .out = &agreed_,
                     .type = DataType::u64,
                     .count = 1,
                     .reduction = ReduceOp::max};
  agreement_.begin();
  Status status = host_.start(most, slots_max, agreement_, operation.deadline);
  is_agreeing_ = status.ok();
  if (!is_agreeing_) agreement_.finish({});
  return status;
}

bool Staged::end_agreement() {
  if (!host_.engine().test(agreement_)) return false;
  is_agreeing_ = false;
  if (const Status status = agreement_.status(); !status.ok()) {
    fail(status, {});
  } else {
    plan(*running_.back().operation, agreed_);
  }
  return true;
}

void Staged::plan(Operation& operation, std::size_t largest) {
  const bool is_barrier = operation.collective.kind == CollectiveKind::barrier;
  elements_ = largest;
  next_element_ = 0;
  window_ = window_elements(operation.collective, position_, slot_bytes_);
  windows_left_ = is_barrier ? 1 : (elements_ + window_ - 1) / window_;
  running_.back().windows_left = windows_left_;
}

bool Staged::send_down() {
  if (windows_left_ == 0 || down_ - retired_ == slots_max) return false;
  Slot& to = slot(down_);
  to.operation = running_.back().operation;
  const Collective& collective = to.operation->collective;
  to.place = place_of(collective.kind);
  const bool is_of_device = to.place == SlotPlace::device;
  to.memory =
      (is_of_device ? device_slots_->data() : memory_.data()) + down_ % slots_max * slot_bytes_;
  write_window(collective, position_, next_element_, window_, {slot_bytes_, to.place}, to.window);
  next_element_ += window_;
  --windows_left_;
  ++down_;
  if (Status status = copy_down(to); !status.ok()) fail(status, {});
  return true;
}

Status Staged::copy_down(Slot& slot) {
  for (const Block& each : slot.window.down) {
    Status status = copy(runtime_, each, slot.memory, true, down_stream_);
    if (!status.ok()) return status;
  }
  return record(runtime_, slot.down, down_stream_.get());
}

bool Staged::start_host() {
  if (started_ == down_) return false;
  Slot& from = slot(started_);
  if (!has_ended(from.down)) return false;
  Collective& collective = from.window.collective;
  collective.in = from.window.has_in ? from.memory + from.window.in_offset : nullptr;
  collective.out = from.window.has_out ? from.memory + from.window.out_offset : nullptr;
  ++started_;
  from.host.begin();
  const std::size_t place = (started_ - 1) % slots_max;
  Status status = host_.start(collective, place, from.host, from.operation->deadline);
  if (!status.ok()) {
    from.host.finish({});
    fail(status, {});
  }
  return true;
}

bool Staged::send_up() {
  if (up_ == started_) return false;
  Slot& from = slot(up_);
  if (!host_.engine().test(from.host)) return false;
  Status status = from.host.status();
  if (status.ok()) {
    ++up_;
    status = copy_up(from);
  }
  if (!status.ok()) fail(status, {});
  return true;
}

Status Staged::copy_up(Slot& slot) {
  if (slot.place == SlotPlace::device && !slot.window.up.empty()) {
    Status status = runtime_.check(runtime_->settle_writes(), "waiting for what adapters wrote");
    if (!status.ok()) return status;
  }
  for (const Block& each : slot.window.up) {
    Status status = copy(runtime_, each, slot.memory, false, up_stream_);
    if (!status.ok()) return status;
  }
  return record(runtime_, slot.up, up_stream_.get());
}

bool Staged::retire() {
  bool moved = false;
  if (retired_ < up_ && has_ended(slot(retired_).up)) {
    ++retired_;
    --running_.front().windows_left;
    moved = true;
  }
  while (!running_.empty() && running_.front().windows_left == 0) {
    Operation& operation = *running_.front().operation;
    running_.pop_front();
    finish(operation, {});
    moved = true;
  }
  return moved;
}

void Staged::finish(Operation& operation, const Status& status) { operation.work.finish(status); }

bool Staged::has_ended(const Event& event) {
  const auto over = is_over(runtime_, event);
  if (!over.ok()) fail(over.status(), {});
  return over.ok() && *over;
}

/// Collectives among the hosts, which are of the last that runs, look at their deadline themselves.
Deadline Staged::deadline() const noexcept {
  const bool is_among_hosts = up_ < started_ || is_agreeing_;
  Deadline soonest;
  for (const Running& each : running_) {
    if (is_among_hosts && &each == &running_.back()) break;
    soonest = soonest.or_sooner(each.operation->deadline);
  }
  for (const Operation* const each : waiting_) soonest = soonest.or_sooner(each->deadline);
  return soonest;
}

void Staged::check_deadline(Instant now) {
  if (!deadline().passed(now)) return;
  fail(Status(StatusCode::timeout, "its copies were not over in time")
           .with_hint("what is before it in its stream may not end; or raise the timeout"),
       now);
}

void Staged::fail(const Status& why, Instant now) {
  if (!failure_.ok()) return;
  failure_ = why;
  failed_at_ = now;
  is_failing_ = true;
  host_.fail(why);
}

/// Whether it has ended them.
bool Staged::end_failed(Instant now) {
  if (failed_at_ == Instant{}) failed_at_ = now;
  const auto is_still = [&](const Event& event) {
    const auto over = is_over(runtime_, event);
    return over.ok() && !*over;
  };
  bool is_touched = is_agreeing_ && !host_.engine().test(agreement_);
  for (std::uint64_t i = up_; i < started_; ++i) {
    is_touched = is_touched || !host_.engine().test(slot(i).host);
  }
  if (is_touched) return false;
  for (std::uint64_t i = retired_; i < up_; ++i) is_touched = is_touched || is_still(slot(i).up);
  for (std::uint64_t i = started_; i < down_; ++i) {
    is_touched = is_touched || is_still(slot(i).down);
  }
  if (is_touched && now - failed_at_ < copies_grace) return false;
  is_failing_ = is_agreeing_ = false;
  windows_left_ = 0;
  retired_ = up_ = started_ = down_;
  while (!running_.empty()) {
    Operation& operation = *running_.front().operation;
    running_.pop_front();
    finish(operation, failure_);
  }
  while (!waiting_.empty()) {
    Operation& operation = *waiting_.front();
    waiting_.pop_front();
    finish(operation, failure_);
  }
  return true;
}

}  // namespace hocket::device
