// A collective of ours as calls of NCCL.
#pragma once

#include "hocket/collective.hpp"

#include "device/windows.hpp"
#include "transports/nccl/library.hpp"

namespace hocket::nccl {

/// Whether NCCL of a version can do it. Says the same on all ranks.
[[nodiscard]] bool can(const Collective& collective, int version) noexcept;

/// Puts a collective that it can do into a stream. `token`: memory of the device, for a barrier.
/// What it says may be in_progress.
[[nodiscard]] Outcome call(const Functions& functions, const Collective& collective,
                           const device::Seat& seat, Handle comm, StreamHandle stream, void* token);

}  // namespace hocket::nccl
