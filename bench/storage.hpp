// Memory of any kind for a trial, and what the processor can touch of it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hocket/device.hpp"

#include "base/clock.hpp"
#include "device/runtime.hpp"

namespace hocket::bench {

/// The device of this process, and a stream on it. Throws where there is none.
class DeviceStream {
 public:
  DeviceStream();

  [[nodiscard]] const device::Runtime& runtime() const noexcept { return runtime_; }
  [[nodiscard]] Stream stream() const noexcept { return {stream_.get()}; }
  void copy(void* to, const void* from, std::size_t bytes) const;
  /// Until the stream is empty.
  void wait() const;

  /// Marks a moment in the stream.
  void mark(const device::Event& event) const;
  [[nodiscard]] device::Event make_mark() const;
  [[nodiscard]] Duration between(const device::Event& begin, const device::Event& end) const;

 private:
  device::Runtime runtime_;
  device::OwnStream stream_;
  device::Event end_;
};

/// Memory of the host is its own copy.
class Storage {
 public:
  Storage() = default;
  /// `on` is null for memory of the host, and else outlives it.
  Storage(const DeviceStream* on, MemoryKind kind, std::size_t bytes);

  /// What a collective gets.
  [[nodiscard]] std::byte* data() noexcept { return is_host() ? copy_.data() : memory_.data(); }
  [[nodiscard]] std::span<std::byte> copy() noexcept { return copy_; }
  [[nodiscard]] std::span<const std::byte> copy() const noexcept { return copy_; }
  void write_back();
  void read();

 private:
  [[nodiscard]] bool is_host() const noexcept { return device_ == nullptr; }

  const DeviceStream* device_ = nullptr;
  std::vector<std::byte> copy_;
  device::Memory memory_;
};

}  // namespace hocket::bench
