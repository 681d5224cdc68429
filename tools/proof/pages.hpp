// Memory for proofs of large worlds, which take many GiB.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

namespace hocket::proof {

/// Zero at first. What nobody touches takes nothing.
class Pages {
 public:
  Pages() = default;
  /// Nearly all of the first `dense` bytes will be touched: with larger pages that takes less time.
  /// Throws std::bad_alloc.
  Pages(std::size_t bytes, std::size_t dense);
  Pages(Pages&& other) noexcept { *this = std::move(other); }
  Pages& operator=(Pages&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages();

  [[nodiscard]] std::byte* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Gives out memory piece by piece, and takes all of it back at once.
class Arena {
 public:
  /// Of trivial things, which are what was there before.
  template <class T>
  [[nodiscard]] T* take(std::size_t count) {
    static_assert(std::is_trivially_copyable_v<T>);
    return reinterpret_cast<T*>(take_bytes(count * sizeof(T)));
  }
  /// Keeps the memory.
  void clear() noexcept { current_ = used_ = 0; }

 private:
  [[nodiscard]] std::byte* take_bytes(std::size_t bytes);

  std::vector<Pages> slabs_;
  std::size_t current_ = 0;  // slab
  std::size_t used_ = 0;     // bytes of it
};

}  // namespace hocket::proof
