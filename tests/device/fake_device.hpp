// A device that is not there: streams are threads, and its memory can't be touched but by copies in
// a stream, as that of a real one. The library is a module (HOCKET_DEVICE_MODULE) as much as a part
// of the fake NCCL and of tests, which say by these functions how it is to behave.
//
// There are two of them. FAKE_DEVICE in the environment: "none" for a machine without a driver,
// "broken" for one that can't say what a pointer points to.
#pragma once

#include <cstddef>
#include <cstdint>

#define FAKE_DEVICE_API __attribute__((visibility("default")))

namespace hocket::fake {

/// The memory behind a pointer of device or managed memory, as a stream sees it; any other pointer
/// itself. Null for device memory that is not allocated.
FAKE_DEVICE_API std::byte* as_device(const void* memory);

/// Work of a stream: called again and again until it says that it is over.
struct Task {
  virtual ~Task() = default;
  virtual bool is_over() = 0;
};
/// Takes it. The stream is null for the default one.
FAKE_DEVICE_API void enqueue(void* stream, Task* task);

enum class Call { copy, allocate, make_event };
/// The n-th such call from now on, and all behind it, fail; 0: none.
FAKE_DEVICE_API void fail(Call call, unsigned n);
/// Whether one has failed since.
FAKE_DEVICE_API bool has_failed(Call call);
/// An adapter writes to device memory: not to be read before it is settled.
FAKE_DEVICE_API void adapter_writes(const void* memory, std::size_t bytes);
/// How often memory was allocated so far.
FAKE_DEVICE_API unsigned allocations();
/// Whether a thread has made the device its own: it takes memory from then on.
FAKE_DEVICE_API bool is_begun(int device);

}  // namespace hocket::fake
