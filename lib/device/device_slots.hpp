// Memory of the device that adapters send from and write to, where no host has a part in it:
// GPUDirect RDMA. Ranks have it all or none.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "device/host_side.hpp"
#include "device/runtime.hpp"

namespace hocket::device {

class DeviceSlots {
 public:
  /// Of this thread's device, at least so many bytes. Borrows the host side. Fails, and says why,
  /// where they can't be had, or adapters don't reach them.
  [[nodiscard]] static Result<std::unique_ptr<DeviceSlots>> make(const Runtime& runtime,
                                                                 HostSide& host, std::size_t bytes);
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;
  /// Nothing is under way in them.
  ~DeviceSlots() { host_.engine().deregister_memory(registered_); }

  [[nodiscard]] std::byte* data() const noexcept { return memory_.data(); }

 private:
  DeviceSlots(HostSide& host, Memory memory, const RegisteredMemory& registered)
      : host_(host), memory_(std::move(memory)), registered_(registered) {}

  HostSide& host_;
  Memory memory_;
  RegisteredMemory registered_;
};

}  // namespace hocket::device
