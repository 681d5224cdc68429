// Where the driver can't make a stream wait for a word of memory, a kernel does.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

namespace hocket::cuda {

/// The stream goes on when *word is at least `value`. A kernel of one thread reads it till then.
cudaError_t launch_gate(cudaStream_t stream, const std::uint32_t* word, std::uint32_t value);

}  // namespace hocket::cuda
