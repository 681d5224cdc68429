// Devices and their streams, as torch knows them: without CUDA's own headers.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <torch/version.h>

namespace hocket_torch {

inline c10::impl::VirtualGuardImpl runtime_of(c10::Device place) {
  return c10::impl::VirtualGuardImpl(place.type());
}

/// Into which this thread puts its kernels.
inline c10::Stream current_stream(c10::Device place) { return runtime_of(place).getStream(place); }

/// The cudaStream_t.
template <class Stream>
void* native(const Stream& stream) {
  if constexpr (requires { stream.native_handle(); }) {
    return stream.native_handle();
  } else {
    TORCH_CHECK(false, "hocket: tensors of a device need a newer torch than " TORCH_VERSION);
  }
}

}  // namespace hocket_torch
