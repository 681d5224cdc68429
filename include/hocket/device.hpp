// Memory of devices, and the streams in whose order work on it is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "hocket/export.h"
#include "hocket/hocket.h"

namespace hocket::inline v1 {

enum class MemoryKind : std::int32_t {
  detect = HOCKET_MEMORY_DETECT,  // asked of the device's runtime
  host = HOCKET_MEMORY_HOST,      // what the system gives
  pinned = HOCKET_MEMORY_PINNED,  // of the host, and registered with the device
  device = HOCKET_MEMORY_DEVICE,
  managed = HOCKET_MEMORY_MANAGED,  // moves between both by itself
};

/// "host", …; "unknown" for a value that is not one of the enumerators.
[[nodiscard]] HOCKET_API std::string_view name(MemoryKind kind) noexcept;
/// Of the names above, but detect.
[[nodiscard]] HOCKET_API std::optional<MemoryKind> parse_memory_kind(
    std::string_view text) noexcept;

/// Where the memory lies; host without a runtime of a device, and of null. Throws where the runtime
/// can't say.
[[nodiscard]] HOCKET_API MemoryKind memory_kind(const void* memory);

/// A stream of the device's runtime: a cudaStream_t. Null is the legacy default stream, also in a
/// program that is compiled for one per thread. Never cudaStreamPerThread: it is another stream in
/// each thread, and NCCL's kernels are launched by threads of its own.
struct Stream {
  void* handle = nullptr;

  friend bool operator==(const Stream&, const Stream&) = default;
};

}  // namespace hocket::inline v1
