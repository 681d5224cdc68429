#include "gate.hpp"

namespace hocket::cuda {
namespace {

__global__ void wait_for(const volatile std::uint32_t* word, std::uint32_t value) {
  while (static_cast<std::int32_t>(*word - value) < 0) {
    __nanosleep(1000);
  }
  __threadfence_system();
}

}  // namespace

cudaError_t launch_gate(cudaStream_t stream, const std::uint32_t* word, std::uint32_t value) {
  wait_for<<<1, 1, 0, stream>>>(word, value);
  return cudaGetLastError();
}

}  // namespace hocket::cuda
