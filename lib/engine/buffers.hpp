// Memory for letters, and for what came before anybody expected it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hocket::engine {

/// Those of the usual size are kept to be taken again; larger ones are rare, and go back.
class Buffers {
 public:
  explicit Buffers(std::uint64_t usual_bytes) : usual_bytes_(usual_bytes) {}

  /// The number of one.
  [[nodiscard]] std::uint32_t take(std::uint64_t bytes) {
    if (free_.empty()) {
      free_.reserve(all_.size() + 1);  // so that give_back() needs no memory
      all_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(all_.size() - 1));
    }
    const std::uint32_t number = free_.back();
    Buffer& buffer = all_[number];
    if (buffer.bytes < bytes) {
      const std::uint64_t larger = std::max(bytes, usual_bytes_);
      buffer = {.memory = std::unique_ptr<std::byte[]>(new std::byte[larger]), .bytes = larger};
    }
    free_.pop_back();
    return number;
  }
  void give_back(std::uint32_t number) noexcept {
    if (all_[number].bytes > usual_bytes_) all_[number] = {};
    free_.push_back(number);
  }
  [[nodiscard]] std::byte* memory(std::uint32_t number) const noexcept {
    return all_[number].memory.get();
  }

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    std::uint64_t bytes = 0;
  };

  const std::uint64_t usual_bytes_;
  std::vector<Buffer> all_ = {};
  std::vector<std::uint32_t> free_ = {};
};

}  // namespace hocket::engine
