#include "proof/pages.hpp"

#include <algorithm>
#include <cstdlib>
#include <new>

#include <sys/mman.h>

namespace hocket::proof {
namespace {

/// What is smaller comes from the heap, as it takes more to ask the system.
constexpr std::size_t mapped_min = 4 << 20;
constexpr std::size_t slab_bytes_min = 64 << 10;
constexpr std::size_t slab_bytes_max = 256 << 20;
constexpr std::size_t alignment = 64;

}  // namespace

Pages::Pages(std::size_t bytes, std::size_t dense) : bytes_(bytes) {
  if (bytes < mapped_min) {
    data_ = static_cast<std::byte*>(std::calloc(std::max<std::size_t>(bytes, 1), 1));
    if (data_ == nullptr) throw std::bad_alloc();
    return;
  }
  // Without a reserve: it may be more than the machine has, as long as little of it is touched.
  void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<std::byte*>(mapped);
  static_cast<void>(::madvise(mapped, dense, MADV_HUGEPAGE));  // a wish
}

Pages::~Pages() {
  if (bytes_ < mapped_min) {
    std::free(data_);
  } else {
    ::munmap(data_, bytes_);
  }
}

std::byte* Arena::take_bytes(std::size_t bytes) {
  bytes = (bytes + alignment - 1) / alignment * alignment;
  while (current_ < slabs_.size() && slabs_[current_].size() - used_ < bytes) {
    ++current_;
    used_ = 0;
  }
  if (current_ == slabs_.size()) {
    const std::size_t last = slabs_.empty() ? 0 : slabs_.back().size();
    const std::size_t size = std::clamp(2 * last, slab_bytes_min, slab_bytes_max);
    slabs_.emplace_back(std::max(bytes, size), std::max(bytes, size));
  }
  std::byte* const taken = slabs_[current_].data() + used_;
  used_ += bytes;
  return taken;
}

}  // namespace hocket::proof
