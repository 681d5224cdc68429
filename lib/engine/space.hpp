// Memory of which nothing is read before it is written: it grows, and is not filled with zeros, so
// that what is never used costs no page.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hocket::engine {

class Space {
 public:
  /// For so many bytes, never null. What was in it is lost if it grows. Throws std::bad_alloc.
  [[nodiscard]] std::byte* of(std::uint64_t bytes) {
    if (memory_ == nullptr || bytes_ < bytes) {
      memory_.reset();
      bytes_ = 0;
      const std::uint64_t wanted = std::max<std::uint64_t>(bytes, 1);
      memory_.reset(new std::byte[wanted]);
      bytes_ = wanted;
    }
    return memory_.get();
  }

 private:
  std::unique_ptr<std::byte[]> memory_ = {};
  std::uint64_t bytes_ = 0;
};

}  // namespace hocket::engine
