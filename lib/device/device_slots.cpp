#include "device/device_slots.hpp"

#include <cstdint>

#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.hpp"

namespace hocket::device {
namespace {

constexpr std::size_t unit_bytes = 64 << 10;  // a multiple of any host's and device's pages

}  // namespace

Result<std::unique_ptr<DeviceSlots>> DeviceSlots::make(const Runtime& runtime, HostSide& host,
                                                       std::size_t bytes) {
  // Better now than behind the first operation.
  Status status = runtime.check(runtime->settle_writes(), "making adapters' writes seen");
  if (!status.ok()) return status;
  bytes = (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
  auto memory = Memory::make(runtime, MemoryKind::device, bytes);
  if (!memory.ok()) return memory.status();
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  if (reinterpret_cast<std::uintptr_t>(memory->data()) % page != 0) {
    return Status(StatusCode::unsupported, "the device's memory does not begin with a page");
  }
  const RegisteredMemory registered = {memory->data(), bytes, true};
  int shared = -1;
  const Status unshared =
      runtime.check(runtime->share(memory->data(), bytes, &shared), "sharing it as a dma-buf");
  const Fd dma_buf(unshared.ok() ? shared : -1);
  status = host.register_device_memory(registered, dma_buf.get());
  if (!status.ok() && !unshared.ok()) {
    return Status(status.code(), fmt::format("{}; {}", status.what(), unshared.what()));
  }
  if (!status.ok()) return status;
  return std::unique_ptr<DeviceSlots>(new DeviceSlots(host, std::move(*memory), registered));
}

}  // namespace hocket::device
