// Collectives on device memory over hosts: window by window into slots of pinned memory, a
// collective among the hosts, and back. Copies to the host, collectives and copies back go on at
// the same time, each in its order.
//
// What only moves goes through slots of the device's own memory where all ranks have such: then
// adapters do all between the copies.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "base/clock.hpp"
#include "device/device_slots.hpp"
#include "device/host_side.hpp"
#include "device/operation.hpp"
#include "device/runtime.hpp"
#include "device/windows.hpp"

namespace hocket::device {

/// One thread at a time.
class Staged {
 public:
  /// Borrows the host side. Allocates all that it ever needs of the device's runtime, of this
  /// thread's device.
  [[nodiscard]] static Result<std::unique_ptr<Staged>> make(const Runtime& runtime, HostSide& host,
                                                            const Position& position,
                                                            std::size_t slot_bytes);
  Staged(const Staged&) = delete;
  Staged& operator=(const Staged&) = delete;
  /// There are no operations.
  ~Staged() = default;

  /// Used again and again for as long as this lives.
  [[nodiscard]] RegisteredMemory slots() const noexcept {
    return {.data = memory_.data(), .bytes = slot_bytes_ * slots_max, .may_receive = true};
  }

  /// Before the first operation, if at all, and so on all ranks. At least as many bytes as slots().
  void use(std::unique_ptr<DeviceSlots> slots) noexcept { device_slots_ = std::move(slots); }
  [[nodiscard]] SlotPlace place_of(CollectiveKind kind) const noexcept {
    return device_slots_ != nullptr && only_moves(kind) ? SlotPlace::device : SlotPlace::host;
  }

  /// Takes it behind the others; its work has begun.
  void push(Operation& operation);

  /// Does what can be done without waiting. Whether it was anything.
  bool progress(Instant now);
  [[nodiscard]] bool is_idle() const noexcept { return waiting_.empty() && running_.empty(); }
  [[nodiscard]] std::size_t operations() const noexcept {
    return waiting_.size() + running_.size();
  }
  /// After progress() that did nothing: the only thing that it waits for, if that is a collective
  /// among the hosts.
  [[nodiscard]] const engine::Work* waits_for() const noexcept;

  /// By when progress() must be called again, though what it waits for is not over.
  [[nodiscard]] Deadline deadline() const noexcept;

  /// Why there can be no more operations, if there can't.
  [[nodiscard]] const Status& failure() const noexcept { return failure_; }
  /// Ends all operations as soon as nothing touches their memory any more, and later ones.
  void fail(const Status& why, Instant now);

 private:
  static constexpr std::size_t slots_max = 4;

  struct Slot {
    std::byte* memory = nullptr;  // where its operation's kind has it
    SlotPlace place = SlotPlace::host;
    Window window = {};
    engine::Work host = {};
    Event down = {};
    Event up = {};
    Operation* operation = nullptr;
  };
  /// An operation whose windows are being sent.
  struct Running {
    Operation* operation = nullptr;
    std::size_t windows_left = SIZE_MAX;  // that are not back, once it is known
  };

  Staged(const Runtime& runtime, HostSide& host, const Position& position, std::size_t slot_bytes);
  [[nodiscard]] Status prepare();

  [[nodiscard]] Slot& slot(std::uint64_t number) noexcept { return slots_.at(number % slots_max); }
  [[nodiscard]] const Slot& slot(std::uint64_t number) const noexcept {
    return slots_.at(number % slots_max);
  }
  bool step();
  bool begin_next();
  [[nodiscard]] Status begin(Operation& operation);
  [[nodiscard]] Status agree(Operation& operation);
  bool end_agreement();
  void plan(Operation& operation, std::size_t largest);
  bool send_down();
  bool start_host();
  bool send_up();
  bool retire();
  void finish(Operation& operation, const Status& status);
  [[nodiscard]] Status copy_down(Slot& slot);
  [[nodiscard]] Status copy_up(Slot& slot);
  [[nodiscard]] bool has_ended(const Event& event);
  void check_deadline(Instant now);
  bool end_failed(Instant now);

  const Runtime runtime_;
  HostSide& host_;
  const Position position_;
  const std::size_t slot_bytes_;
  OwnStream down_stream_;
  OwnStream up_stream_;
  Memory memory_;
  std::unique_ptr<DeviceSlots> device_slots_;  // null: there are none
  std::array<Slot, slots_max> slots_;

  std::deque<Operation*> waiting_;
  std::deque<Running> running_;
  std::size_t next_element_ = 0;  // of the last that runs: where its next window begins
  std::size_t elements_ = 0;      // of its largest part
  std::size_t window_ = 0;        // of one window
  std::size_t windows_left_ = 0;  // to be sent down
  bool is_agreeing_ = false;      // how many windows it has
  std::uint64_t agreed_ = 0;
  engine::Work agreement_;

  // Windows so far: the rest of each is behind the next.
  std::uint64_t down_ = 0;     // sent to slots
  std::uint64_t started_ = 0;  // among hosts
  std::uint64_t up_ = 0;       // sent back
  std::uint64_t retired_ = 0;  // are back
  Status failure_;
  Instant failed_at_ = {};
  bool is_failing_ = false;  // operations are still to be ended
};

}  // namespace hocket::device
