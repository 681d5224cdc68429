// Device memory by CUDA's runtime: the table of lib/device.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "device/table.hpp"

namespace hocket::cuda {
namespace {

// Those of MemoryKind.
constexpr std::int32_t host_kind = 1;
constexpr std::int32_t pinned_kind = 2;
constexpr std::int32_t device_kind = 3;
constexpr std::int32_t managed_kind = 4;

/// CUDA keeps the last error of a thread, where the user's own next question would find it.
int result(cudaError_t error) {
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

/// What another thread captures into a graph fails when this one does what can't be in a graph,
/// unless it has nothing to do with it.
class OutsideCaptures {
 public:
  OutsideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideCaptures(const OutsideCaptures&) = delete;
  OutsideCaptures& operator=(const OutsideCaptures&) = delete;
  ~OutsideCaptures() { (void)cudaThreadExchangeStreamCaptureMode(&mode_); }

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// A function of the driver, which nothing here is linked with; null where there is none.
template <class Function>
Function* find_in_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found = {};
  const cudaError_t error =
#if CUDART_VERSION >= 12050
      cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found);
#else
      cudaGetDriverEntryPoint(name, &function, cudaEnableDefault, &found);
#endif
  return result(error) == 0 ? reinterpret_cast<Function*>(function) : nullptr;
}

cudaStream_t stream_of(void* handle) { return static_cast<cudaStream_t>(handle); }
cudaEvent_t event_of(void* handle) { return static_cast<cudaEvent_t>(handle); }

const char* error_text(int error) { return cudaGetErrorString(static_cast<cudaError_t>(error)); }

int available(char* why, std::size_t bytes) {
  int driver = 0;
  int runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error == cudaSuccess && devices > 0) return 0;
  (void)cudaGetLastError();
  if (driver == 0) {
    std::snprintf(why, bytes,
                  "there is no NVIDIA driver: libcuda.so.1 is not installed, or can't be loaded");
  } else if (error == cudaErrorInsufficientDriver) {
    std::snprintf(why, bytes,
                  "the NVIDIA driver is for CUDA %d.%d, and this module needs one for %d.%d: "
                  "install a later driver",
                  driver / 1000, driver / 10 % 100, runtime / 1000, runtime / 10 % 100);
  } else if (error == cudaSuccess || error == cudaErrorNoDevice) {
    std::snprintf(why, bytes,
                  "the NVIDIA driver finds no device (CUDA_VISIBLE_DEVICES may hide it)");
  } else {
    std::snprintf(why, bytes, "the CUDA runtime can't be used: %s (%d)", error_text(error), error);
  }
  return 1;
}

void describe(char* text, std::size_t bytes) {
  int driver = 0;
  int devices = 0;
  cudaDeviceProp first = {};
  (void)cudaDriverGetVersion(&driver);
  (void)cudaGetDeviceCount(&devices);
  (void)cudaGetDeviceProperties(&first, 0);
  std::snprintf(text, bytes, "%d of %s, driver for CUDA %d.%d, runtime %d.%d", devices, first.name,
                driver / 1000, driver / 10 % 100, CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
}

int get_device(int* device) { return result(cudaGetDevice(device)); }
int set_device(int device) { return result(cudaSetDevice(device)); }

int identify(int device, char* text, std::size_t bytes) {
  return result(cudaDeviceGetPCIBusId(text, static_cast<int>(bytes), device));
}

using GetAttributes = CUresult(unsigned int count, CUpointer_attribute* attributes, void** values,
                               CUdeviceptr memory);

/// Asks the driver: the runtime would begin a device for it, which may be full, or another
/// process's alone, though the memory is the host's.
int facts_of(const void* memory, device::MemoryFacts* facts) {
  static GetAttributes* const get_attributes =
      find_in_driver<GetAttributes>("cuPointerGetAttributes");
  if (get_attributes == nullptr) return cudaErrorNotSupported;
  unsigned int type = 0;
  unsigned int is_managed = 0;
  int device = -1;
  std::array attributes = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
                           CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
  std::array<void*, 3> values = {&type, &is_managed, &device};
  const CUresult error = get_attributes(attributes.size(), attributes.data(), values.data(),
                                        reinterpret_cast<CUdeviceptr>(memory));
  // Before the driver has begun there is no memory of a device.
  if (error != CUDA_SUCCESS && error != CUDA_ERROR_NOT_INITIALIZED) return static_cast<int>(error);
  facts->device = device;
  facts->kind = host_kind;
  if (type == CU_MEMORYTYPE_HOST) facts->kind = pinned_kind;
  if (type == CU_MEMORYTYPE_DEVICE) facts->kind = device_kind;
  if (is_managed != 0) facts->kind = managed_kind;
  return 0;
}

int allocate(std::int32_t kind, std::size_t bytes, void** memory) {
  const OutsideCaptures outside;
  switch (kind) {
    case pinned_kind:
      return result(cudaHostAlloc(memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    case device_kind:
      return result(cudaMalloc(memory, bytes));
    case managed_kind:
      return result(cudaMallocManaged(memory, bytes, cudaMemAttachGlobal));
    default:
      return cudaErrorInvalidValue;
  }
}

int release(std::int32_t kind, void* memory) {
  const OutsideCaptures outside;
  return result(kind == pinned_kind ? cudaFreeHost(memory) : cudaFree(memory));
}

int make_stream(void** stream) {
  const OutsideCaptures outside;
  return result(
      cudaStreamCreateWithFlags(reinterpret_cast<cudaStream_t*>(stream), cudaStreamNonBlocking));
}
int destroy_stream(void* stream) { return result(cudaStreamDestroy(stream_of(stream))); }

int make_event(int is_timed, void** event) {
  return result(
      cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event),
                               is_timed != 0 ? cudaEventDefault : cudaEventDisableTiming));
}
int destroy_event(void* event) { return result(cudaEventDestroy(event_of(event))); }
int record(void* event, void* stream) {
  return result(cudaEventRecord(event_of(event), stream_of(stream)));
}
int wait_for_event(void* stream, void* event) {
  return result(cudaStreamWaitEvent(stream_of(stream), event_of(event), 0));
}
int query(void* event, int* is_over) {
  const OutsideCaptures outside;
  const cudaError_t error = cudaEventQuery(event_of(event));
  *is_over = error == cudaSuccess ? 1 : 0;
  return error == cudaErrorNotReady ? (void)cudaGetLastError(), 0 : result(error);
}
int elapsed(void* begin, void* end, float* milliseconds) {
  return result(cudaEventElapsedTime(milliseconds, event_of(begin), event_of(end)));
}

int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  return result(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)));
}
int copy_rows(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
              std::size_t row_bytes, std::size_t rows, void* stream) {
  return result(cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, row_bytes, rows,
                                  cudaMemcpyDefault, stream_of(stream)));
}

using GetHandle = CUresult(void* handle, CUdeviceptr memory, std::size_t bytes,
                           CUmemRangeHandleType type, unsigned long long flags);

int share(const void* memory, std::size_t bytes, int* dma_buf) {
  static GetHandle* const get_handle = find_in_driver<GetHandle>("cuMemGetHandleForAddressRange");
  if (get_handle == nullptr) return cudaErrorNotSupported;
  return static_cast<int>(get_handle(dma_buf, reinterpret_cast<CUdeviceptr>(memory), bytes,
                                     CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
}

int settle_writes() {
  const OutsideCaptures outside;
  int device = 0;
  int ordering = 0;
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) {
    error = cudaDeviceGetAttribute(&ordering, cudaDevAttrGPUDirectRDMAWritesOrdering, device);
  }
  const bool is_settled = error == cudaSuccess && ordering >= cudaGPUDirectRDMAWritesOrderingOwner;
  if (error != cudaSuccess || is_settled) return result(error);
  return result(cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTargetCurrentDevice,
                                                   cudaFlushGPUDirectRDMAWritesToOwner));
}

constexpr device::Table table = {
    .version = device::table_version,
    .name = "cuda",
    .available = available,
    .describe = describe,
    .error_text = error_text,
    .get_device = get_device,
    .set_device = set_device,
    .identify = identify,
    .facts_of = facts_of,
    .allocate = allocate,
    .release = release,
    .make_stream = make_stream,
    .destroy_stream = destroy_stream,
    .make_event = make_event,
    .destroy_event = destroy_event,
    .record = record,
    .wait_for_event = wait_for_event,
    .query = query,
    .elapsed = elapsed,
    .copy = copy,
    .copy_rows = copy_rows,
    .share = share,
    .settle_writes = settle_writes,
};

}  // namespace
}  // namespace hocket::cuda

extern "C" __attribute__((visibility("default"))) const hocket::device::Table* hocket_device_v0() {
  return &hocket::cuda::table;
}
