// The runtime of this machine's devices, if there is one, and what is owned of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "hocket/device.hpp"
#include "hocket/status.hpp"

#include "device/table.hpp"

namespace hocket::device {

/// A table that can serve. Copies are the same runtime. Any thread.
class Runtime {
 public:
  explicit Runtime(const Table& table) noexcept : table_(&table) {}

  [[nodiscard]] const Table& table() const noexcept { return *table_; }
  [[nodiscard]] const Table* operator->() const noexcept { return table_; }

  /// What a call of the table is to the user: `what` was tried.
  [[nodiscard]] Status check(int error, std::string_view what) const {
    return error == 0 ? Status() : failure(error, what);
  }
  [[nodiscard]] Result<MemoryFacts> facts_of(const void* memory) const;
  /// As other ranks of this host call the device.
  [[nodiscard]] Result<std::string> identify(int device) const;
  [[nodiscard]] std::string describe() const;

 private:
  [[nodiscard]] Status failure(int error, std::string_view what) const;

  const Table* table_;
};

/// Of this process, from the first call on: the module that HOCKET_DEVICE_MODULE names, else the
/// one that is installed beside the library. Fails with unsupported and says what is missing.
[[nodiscard]] const Result<Runtime>& process_runtime();

/// The same of one file, which stays loaded.
[[nodiscard]] Result<Runtime> load_runtime(const std::string& file);

/// Makes a device this thread's own, as long as it lives.
class OnDevice {
 public:
  OnDevice(const Runtime& runtime, int device) noexcept : runtime_(runtime) {
    if (runtime_->get_device(&before_) != 0) before_ = device;
    if (before_ != device) runtime_->set_device(device);
    device_ = device;
  }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;
  ~OnDevice() {
    if (before_ != device_) runtime_->set_device(before_);
  }

 private:
  const Runtime& runtime_;
  int before_ = 0;
  int device_ = 0;
};

/// A handle of the runtime, destroyed by one of its functions.
template <int (*Table::*destroy)(void*)>
class Owned {
 public:
  Owned() noexcept = default;
  Owned(const Runtime& runtime, void* handle) noexcept
      : table_(&runtime.table()), handle_(handle) {}
  Owned(Owned&& other) noexcept
      : table_(other.table_), handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != nullptr) (table_->*destroy)(handle_);
  }

  [[nodiscard]] void* get() const noexcept { return handle_; }

 private:
  const Table* table_ = nullptr;
  void* handle_ = nullptr;
};

using OwnStream = Owned<&Table::destroy_stream>;
using Event = Owned<&Table::destroy_event>;

[[nodiscard]] Result<OwnStream> make_stream(const Runtime& runtime);
[[nodiscard]] Result<Event> make_event(const Runtime& runtime, bool is_timed = false);
/// The event becomes what the stream has now.
[[nodiscard]] Status record(const Runtime& runtime, const Event& event, void* stream);
/// What comes into the stream from now on waits for the event.
[[nodiscard]] Status hold_up(const Runtime& runtime, void* stream, const Event& event);
/// Whether all before it is done.
[[nodiscard]] Result<bool> is_over(const Runtime& runtime, const Event& event);

/// Memory of any kind but the system's own.
class Memory {
 public:
  [[nodiscard]] static Result<Memory> make(const Runtime& runtime, MemoryKind kind,
                                           std::size_t bytes);
  Memory() noexcept = default;
  Memory(Memory&& other) noexcept
      : table_(other.table_), kind_(other.kind_), data_(std::exchange(other.data_, nullptr)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(table_, other.table_);
    std::swap(kind_, other.kind_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Memory() {
    if (data_ != nullptr) table_->release(kind_, data_);
  }

  [[nodiscard]] std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  Memory(const Runtime& runtime, std::int32_t kind, void* data) noexcept
      : table_(&runtime.table()), kind_(kind), data_(data) {}

  const Table* table_ = nullptr;
  std::int32_t kind_ = 0;
  void* data_ = nullptr;
};

}  // namespace hocket::device
