// Memory for letters, and for what came before anybody expected it.
#pragma once

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
    const bool is_large = bytes > usual_bytes_;
    std::vector<std::uint32_t>& free = is_large ? free_numbers_ : free_;
    std::uint32_t number = 0;
    if (free.empty()) {
      number = static_cast<std::uint32_t>(all_.size());
      all_.emplace_back();
      free_.reserve(all_.size());
      free_numbers_.reserve(all_.size());
    } else {
      number = free.back();
      free.pop_back();
    }
    Buffer& buffer = all_[number];
    buffer.is_large = is_large;
    if (buffer.memory == nullptr) {
      buffer.memory.reset(new std::byte[is_large ? bytes : usual_bytes_]);
    }
    return number;
  }
  void give_back(std::uint32_t number) {
    if (!all_[number].is_large) return free_.push_back(number);
    all_[number].memory.reset();
    free_numbers_.push_back(number);
  }
  [[nodiscard]] std::byte* memory(std::uint32_t number) const noexcept {
    return all_[number].memory.get();
  }

 private:
  struct Buffer {
    std::unique_ptr<std::byte[]> memory;
    bool is_large = false;
  };

  const std::uint64_t usual_bytes_;
  std::vector<Buffer> all_ = {};
  std::vector<std::uint32_t> free_ = {};
  std::vector<std::uint32_t> free_numbers_ = {};  // without memory
};

}  // namespace hocket::engine
