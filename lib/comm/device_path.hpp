// Collectives on device memory: offloaded to NCCL, or staged through host memory. Each window of a
// staged one is a collective on host memory, on lanes of its own.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "comm/group_core.hpp"
#include "comm/host_path.hpp"
#include "comm/path.hpp"
#include "device/device_side.hpp"
#include "device/host_side.hpp"

namespace hocket::comm {

class DevicePath final : public CollectivePath, private device::HostSide {
 public:
  /// Borrows the communicator's core, whose context must have a device runtime.
  explicit DevicePath(GroupCore& core);
  ~DevicePath() override;

  [[nodiscard]] Status run(const Collective& collective, int device) override;
  [[nodiscard]] Status start(const Collective& collective, int device,
                             Operation& operation) override;
  [[nodiscard]] Result<std::unique_ptr<PreparedCollective>> prepare(std::shared_ptr<Group> group,
                                                                    const Collective& collective,
                                                                    int device) override;
  bool wait(const Operation& operation, Deadline deadline) override {
    return devices_.wait(*operation.device, deadline);
  }
  bool test(const Operation& operation) override { return devices_.test(*operation.device); }
  bool call_at_end(Operation& operation, engine::EndNote note, engine::EndNote& former) override {
    return devices_.call_at_end(*operation.device, note, former);
  }
  [[nodiscard]] bool ends_silently() const noexcept override { return true; }  // kernels do
  [[nodiscard]] Status make_wait(Operation& operation, Stream stream) override;
  [[nodiscard]] Status explain(const Operation& operation,
                               const Status& why) const noexcept override {
    return explain(*operation.device, why);
  }
  void let_go(Operation& operation) noexcept override;

  /// Splits the offloaded part of the communicator. `part` is this rank's new path, or null.
  [[nodiscard]] Status split(int color, int key, DevicePath* part);
  [[nodiscard]] device::DeviceSide& devices() noexcept { return devices_; }

 private:
  [[nodiscard]] Result<device::Operation*> begin(const Collective& collective, int device,
                                                 device::DeviceSide::Order order,
                                                 Operation* operation);
  [[nodiscard]] Status explain(const device::Operation& operation,
                               const Status& why) const noexcept;

  // Of HostSide, for staged operations.
  [[nodiscard]] engine::Engine& engine() override { return window_core_.engine(); }
  [[nodiscard]] Status start(const Collective& collective, std::size_t slot, engine::Work& work,
                             Deadline deadline) override {
    return host_.begin(collective, windows_.at(slot), work, deadline);
  }
  [[nodiscard]] Status register_device_memory(const RegisteredMemory& memory,
                                              int dma_buf) override {
    return engine().register_device_memory(memory, dma_buf, window_core_.members().others());
  }
  void note_call(device::Operation& operation) override;
  void compare_call(std::uint64_t number, Instant now) noexcept override;
  [[nodiscard]] std::uint64_t begin_record(const device::Operation& operation,
                                           Instant now) noexcept override;
  void end_record(std::uint64_t record, bool is_done) noexcept override {
    if (record != 0) engine().end_record(record, is_done);
  }
  [[nodiscard]] Status watch() override { return window_core_.open_watch(); }
  [[nodiscard]] Status loss(Instant now) override;
  void fail(const Status& why) override;

  GroupCore& core_;
  GroupCore window_core_;  // of the same ranks, for the windows
  HostPath host_;
  std::array<HostCall, 8> windows_;  // by slot
  std::uint64_t record_id_ = 0;      // of what is offloaded, once there is something
  Signature noted_;                  // of the last call
  engine::Tag::History history_;
  std::uint64_t called_ = 0;       // the number of the last call
  engine::LastCalls<2048> calls_;  // more than one rank may be ahead of another
  health::WatchedGroup watched_;   // of the monitor, if there is one: lets it compare calls
  Instant next_question_ = {};
  Instant next_look_ = {};  // when loss() asks the engine again
  Instant lost_since_ = Instant::max();
  device::DeviceSide devices_;
};

}  // namespace hocket::comm
