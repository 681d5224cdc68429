// Preallocated memory for one posted handler, so that posting it allocates nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <new>

namespace hocket::link {

/// A second handler that is posted at the same time uses the heap. Must outlive its handlers. Any
/// thread may call it.
class HandlerMemory {
 public:
  [[nodiscard]] void* take(std::size_t bytes) {
    if (bytes <= bytes_.size() && !is_used_.exchange(true, std::memory_order_acquire)) {
      return bytes_.data();
    }
    return ::operator new(bytes);
  }
  void give_back(void* memory) noexcept {
    if (memory != bytes_.data()) return ::operator delete(memory);
    is_used_.store(false, std::memory_order_release);
  }

  /// The allocator for asio::bind_allocator().
  template <class T>
  class Allocator {
   public:
    using value_type = T;
    explicit Allocator(HandlerMemory& memory) noexcept : memory_(&memory) {}
    template <class U>
    Allocator(const Allocator<U>& other) noexcept : memory_(other.memory_) {}

    [[nodiscard]] T* allocate(std::size_t count) {
      return static_cast<T*>(memory_->take(count * sizeof(T)));
    }
    void deallocate(T* memory, std::size_t /*count*/) noexcept { memory_->give_back(memory); }
    template <class U>
    bool operator==(const Allocator<U>& other) const noexcept {
      return memory_ == other.memory_;
    }

   private:
    template <class U>
    friend class Allocator;
    HandlerMemory* memory_;
  };

 private:
  alignas(std::max_align_t) std::array<std::byte, 256> bytes_ = {};
  std::atomic<bool> is_used_ = false;
};

}  // namespace hocket::link
