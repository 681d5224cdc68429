// Devices and their streams, as torch knows them: without CUDA's own headers.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/version.h>

namespace hocket_torch {

inline c10::impl::VirtualGuardImpl runtime_of(c10::Device place) {
  return c10::impl::VirtualGuardImpl(place.type());
}

/// Into which this thread puts its kernels.
inline c10::Stream current_stream(c10::Device place) { return runtime_of(place).getStream(place); }

/// Hocket asks CUDA which device this thread uses.
class OnDevice {
 public:
  explicit OnDevice(c10::Device place) {
    if (!place.is_cpu()) guard_.reset_device(place);
  }

 private:
  c10::OptionalDeviceGuard guard_;
};

/// The cudaStream_t.
template <class Stream>
void* native(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    TORCH_CHECK(false, "hocket: tensors of a device need torch 2.11 or so, not " TORCH_VERSION);
  }
}

}  // namespace hocket_torch
