// A collective of ours as calls of NCCL.
#pragma once

#include "hocket/collective.hpp"

#include "device/windows.hpp"
#include "transports/nccl/library.hpp"

namespace hocket::nccl {

/// Whether any NCCL can do it, on any device: so that all ranks say the same.
[[nodiscard]] bool can(const Collective& collective) noexcept;

/// Puts a collective that it can do into a stream. `token`: memory of the device, for a barrier.
/// What it says may be in_progress.
[[nodiscard]] Outcome call(const Functions& functions, const Collective& collective,
                           const Position& position, Handle comm, StreamHandle stream, void* token);

}  // namespace hocket::nccl
