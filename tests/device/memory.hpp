// Vectors of device memory, filled and read through a stream.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "hocket/hocket.hpp"

#include "device/runtime.hpp"

namespace hocket::testing {

/// The runtime and a stream of it.
class Device {
 public:
  Device()
      : runtime_(*device::process_runtime()),
        stream_(device::make_stream(runtime_).value()),
        event_(device::make_event(runtime_).value()) {}

  [[nodiscard]] const device::Runtime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] Stream stream() const noexcept { return {stream_.get()}; }
  void copy(void* to, const void* from, std::size_t bytes) const {
    if (bytes > 0) check(runtime_->copy(to, from, bytes, stream_.get()), "copy");
  }
  void wait() const {
    check(runtime_->record(event_.get(), stream_.get()), "record");
    while (!device::is_over(runtime_, event_).value()) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  void check(int error, const char* what) const {
    if (Status status = runtime_.check(error, what); !status.ok()) throw_error(std::move(status));
  }

  device::Runtime runtime_;
  device::OwnStream stream_;
  device::Event event_;
};

template <class T>
class Vector {
 public:
  Vector(const Device& device, std::vector<T> values) : Vector(device, values.size()) {
    *this = values;
  }
  Vector(const Device& device, std::size_t count)
      : device_(device),
        count_(count),
        memory_(device::Memory::make(device.runtime(), MemoryKind::device,
                                     std::max<std::size_t>(count, 1) * sizeof(T))
                    .value()) {}

  Vector& operator=(const std::vector<T>& values) {
    device_.copy(memory_.data(), values.data(), count_ * sizeof(T));
    device_.wait();
    return *this;
  }
  /// Only in the order of the stream.
  void write(const std::vector<T>& values) {
    device_.copy(memory_.data(), values.data(), count_ * sizeof(T));
  }
  void read(std::vector<T>& to) const {
    to.resize(count_);
    device_.copy(to.data(), memory_.data(), count_ * sizeof(T));
  }
  [[nodiscard]] std::vector<T> values() const {
    std::vector<T> values(count_);
    read(values);
    device_.wait();
    return values;
  }
  [[nodiscard]] T* data() const noexcept { return reinterpret_cast<T*>(memory_.data()); }
  [[nodiscard]] std::span<T> all() const noexcept { return {data(), count_}; }
  [[nodiscard]] std::span<const T> in() const noexcept { return {data(), count_}; }

 private:
  const Device& device_;
  std::size_t count_;
  device::Memory memory_;
};

}  // namespace hocket::testing
