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

/// The device that a collective's memory and stream are of; -1 for the host's own. Fails when they
/// don't go together.
[[nodiscard]] Result<int> find_device(const device::Runtime& runtime, const Collective& collective);

}  // namespace hocket::comm
