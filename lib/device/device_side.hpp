// A communicator's operations on device memory: offloaded where all ranks can, else staged.
//
// Whoever waits for an operation keeps all of them moving; a thread of our own does when nobody
// waits.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "device/agreement.hpp"
#include "device/host_side.hpp"
#include "device/operation.hpp"
#include "device/runtime.hpp"
#include "device/staged.hpp"
#include "device/windows.hpp"

namespace hocket::device {

struct DeviceSideOptions {
  Position position = {};
  std::string host = {};                 // the same for ranks of one host only
  const OffloadKind* offload = nullptr;  // that may be used
  std::size_t slot_bytes = 4 << 20;      // of the staged way; the same on all ranks
  bool allows_gpudirect = true;          // on this rank
};

/// Any thread.
class DeviceSide {
 public:
  /// Borrows the host side. Allocates nothing yet.
  DeviceSide(const Runtime& runtime, HostSide& host, DeviceSideOptions options);
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;
  /// Waits as drain() does.
  ~DeviceSide();

  /// Waits for what is under way, until it is over or its deadline passes.
  void drain();

  /// Where the work is done: behind what the user's stream has, and beside it; or in it.
  enum class Order : std::uint8_t { beside, in_stream };

  /// Begins an operation on memory of a device, the same at each call.
  /// The handle is the caller's until release(). `is_awaited`: who calls waits for it at once.
  [[nodiscard]] Result<Operation*> start(const Collective& collective, int device,
                                         Deadline deadline, Order order, bool is_awaited);
  /// Makes a stream wait until it is over. What is staged is over when this returns.
  [[nodiscard]] Status make_wait(Operation& operation, void* stream);
  /// Until it is over, or the deadline. Whether it is over.
  bool wait(Operation& operation, Deadline deadline = {});
  /// Moves things on, if nobody else does. Whether it is over.
  bool test(Operation& operation);
  /// As Engine::call_at_end.
  bool call_at_end(Operation& operation, engine::EndNote note, engine::EndNote& former);
  /// It may be under way still.
  void release(Operation& operation);

  /// The offload's part of Communicator::split: all ranks call it. `child` goes on with it.
  [[nodiscard]] Status split(int color, int key, DeviceSide* child, Deadline deadline);

  /// Memory that is used again and again; null where nobody has use for it. All ranks announce
  /// theirs between the same two operations, and forget it so.
  [[nodiscard]] void* announce(void* memory, std::size_t bytes);
  /// Waits for the operations under way, which may have it.
  void forget(void* announced);

 private:
  using Lock = std::unique_lock<std::mutex>;

  [[nodiscard]] Status settle(int device, Deadline deadline);
  [[nodiscard]] Status choose_way(Deadline deadline);
  [[nodiscard]] Result<Operation*> take(const Collective& collective, Deadline deadline);
  void recycle(Operation& operation);
  [[nodiscard]] Status launch(Operation& operation, Order order);
  [[nodiscard]] Status begin_staging(Deadline deadline);
  [[nodiscard]] Status stage(Operation& operation);
  [[nodiscard]] Status order_behind(void* stream, const Event& event, void* other);

  bool progress();
  bool watch(Instant now);
  void fail(const Status& why);
  [[nodiscard]] bool has_let_go() const noexcept;
  bool end_offloaded();
  [[nodiscard]] Status check(Instant now);
  void leave();
  void reap();
  void finish_offloaded(const Status& status);
  template <class IsOver>
  void drive_until(Lock& lock, IsOver&& is_over);
  template <class IsOver>
  void drive(Lock& lock, Deadline deadline, IsOver&& is_over);
  void rest(Lock& lock, Instant idle_since, Deadline deadline);
  enum class Urgency : std::uint8_t { none, soon };
  void ring(Urgency urgency);
  void run_in_background();
  [[nodiscard]] bool is_idle() const noexcept {
    return offloaded_.empty() && (staged_ == nullptr || staged_->is_idle());
  }

  const Runtime runtime_;
  HostSide& host_;
  const DeviceSideOptions options_;

  std::mutex mutex_;   // of all below
  int device_ = -1;    // from the first operation on
  int split_on_ = -1;  // the device, if a split has made the offload
  Way way_;
  OwnStream stream_;  // of offloaded operations beside the user's
  std::unique_ptr<Staged> staged_;
  Operation* last_staged_ = nullptr;
  Operation* last_offloaded_ = nullptr;
  std::uint64_t operations_ = 0;
  Status failure_;
  Instant failed_at_ = {};
  std::thread aborter_;  // once it has failed
  std::atomic<bool> is_aborted_ = false;
  std::vector<std::unique_ptr<Operation>> all_;
  std::vector<Operation*> free_;
  std::vector<Operation*> staged_operations_;  // under way, or not released yet
  std::deque<Operation*> offloaded_;           // under way, in their order
  Instant offloaded_until_ = {};               // the last deadline of all so far
  Instant next_check_ = {};                    // of the offload's errors

  bool is_driven_ = false;
  std::uint32_t wanting_ = 0;        // threads that want to drive
  std::condition_variable changed_;  // for those that wait while another drives
  engine::Work bell_ = {};           // ends the driver's sleep in the engine
  enum class Background : std::uint8_t { absent, awake, resting, asleep };
  Background background_state_ = Background::absent;
  Instant busy_until_ = {};  // when the background may sleep
  bool is_ending_ = false;
  std::condition_variable background_bell_;
  std::thread background_;  // from the first need on
};

}  // namespace hocket::device
