// Replaces operator new and delete for a program and all that it is linked with. For its one main
// file, which defines on_allocation(). All forms, as those of a sanitizer do not call each other.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace hocket::testing {

/// Called before each allocation. What it throws is how the allocation ends.
void on_allocation();

inline void* allocated(std::size_t bytes, std::size_t alignment) {
  on_allocation();
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, bytes) != 0) throw std::bad_alloc();
  return memory;
}

inline void* allocated_or_null(std::size_t bytes, std::size_t alignment) noexcept {
  try {
    return allocated(bytes, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

inline constexpr std::size_t usual_alignment = alignof(std::max_align_t);

}  // namespace hocket::testing

void* operator new(std::size_t bytes) {
  return hocket::testing::allocated(bytes, hocket::testing::usual_alignment);
}
void* operator new[](std::size_t bytes) {
  return hocket::testing::allocated(bytes, hocket::testing::usual_alignment);
}
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return hocket::testing::allocated_or_null(bytes, hocket::testing::usual_alignment);
}
void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  return hocket::testing::allocated_or_null(bytes, hocket::testing::usual_alignment);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return hocket::testing::allocated(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return hocket::testing::allocated(bytes, static_cast<std::size_t>(alignment));
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t /*bytes*/) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/, std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t /*bytes*/,
                       std::align_val_t /*alignment*/) noexcept {
  std::free(memory);
}
