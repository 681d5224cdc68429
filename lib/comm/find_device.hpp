// Which device a collective is for.
#pragma once

#include "hocket/collective.hpp"
#include "hocket/device.hpp"
#include "hocket/status.hpp"

#include "device/runtime.hpp"

namespace hocket::comm {

[[nodiscard]] constexpr bool is_of_device(MemoryKind kind) noexcept {
  return kind == MemoryKind::device || kind == MemoryKind::managed;
}

/// Returns the device of a collective's memory and stream, or -1 for host memory. Fails if they do
/// not belong together.
[[nodiscard]] Result<int> find_device(const device::Runtime& runtime, const Collective& collective);

}  // namespace hocket::comm
