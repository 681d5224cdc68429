// What Hocket asks of a device, as functions in C: filled by a module that is loaded (devices/), or
// by the tests. The two are of one release: a table of another version is refused.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hocket::device {

inline constexpr std::uint32_t table_version = 3;
/// The module's only function: `const Table* hocket_device_v0()`. The table lives as long as the
/// process.
inline constexpr const char* table_entry_point = "hocket_device_v0";

/// Of what a pointer points to. The kinds are those of MemoryKind.
struct MemoryFacts {
  std::int32_t kind = 0;
  std::int32_t device = -1;  // of device, managed and pinned memory
};

/// Functions return 0, or the runtime's own number of an error. Any thread may call them. None
/// waits for the device, but those that allocate, free or make something, and settle_writes.
struct Table {
  std::uint32_t version;
  const char* name;  // "cuda"

  /// Whether there is a device that can be used; else why not, in words for the user.
  int (*available)(char* why, std::size_t why_bytes);
  /// For people: driver, runtime, devices.
  void (*describe)(char* text, std::size_t bytes);
  const char* (*error_text)(int error);

  int (*get_device)(int* device);  // of this thread
  int (*set_device)(int device);
  /// Names a device, as no other of this host is called.
  int (*identify)(int device, char* text, std::size_t bytes);

  int (*facts_of)(const void* memory, MemoryFacts* facts);
  /// Of a kind that is not host. Of this thread's device.
  int (*allocate)(std::int32_t kind, std::size_t bytes, void** memory);
  int (*release)(std::int32_t kind, void* memory);

  int (*make_stream)(void** stream);  // one that does not wait for the default stream
  int (*destroy_stream)(void* stream);
  int (*make_event)(int is_timed, void** event);
  int (*destroy_event)(void* event);
  int (*record)(void* event, void* stream);
  int (*wait_for_event)(void* stream, void* event);
  /// *is_over: whether all before the event's last record is done.
  int (*query)(void* event, int* is_over);
  int (*elapsed)(void* begin, void* end, float* milliseconds);

  // In the order of the stream, from any kind of memory to any.
  int (*copy)(void* to, const void* from, std::size_t bytes, void* stream);
  int (*copy_rows)(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                   std::size_t row_bytes, std::size_t rows, void* stream);

  // For adapters that reach device memory, of this thread's device.
  /// A descriptor of just this memory as a dma-buf, which is the caller's. Begin and length are
  /// multiples of the host's pages.
  int (*share)(const void* memory, std::size_t bytes, int* dma_buf);
  /// What adapters have written, as they said, is what the device reads from now on.
  int (*settle_writes)();
};

}  // namespace hocket::device
