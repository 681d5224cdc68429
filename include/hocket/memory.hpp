// Memory for operations that the adapters of a communicator know in advance.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "hocket/communicator.hpp"
#include "hocket/export.h"
#include "hocket/types.hpp"

// Inside the library.
namespace hocket::comm {
class MemoryBlock;
}

namespace hocket::inline v1 {

/// Zeroed memory of the host, aligned to 4096 bytes, which belongs to this object. Any operation
/// may use it. The adapters of the world for which it was allocated know it (from 64 KiB on) and
/// move it without copies from the first operation on. It must outlive the operations on it. Until
/// it is destroyed, it keeps the communicator it was allocated from, and thereby the world.
class HOCKET_API Memory {
 public:
  Memory() noexcept;  // of no bytes
  explicit Memory(std::unique_ptr<comm::MemoryBlock> block) noexcept;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  /// Null if default-constructed or moved from.
  [[nodiscard]] std::byte* data() const noexcept;
  [[nodiscard]] std::size_t size() const noexcept;  // in bytes
  /// As many elements as fit.
  template <Element T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data()), size() / sizeof(T)};
  }

 private:
  std::unique_ptr<comm::MemoryBlock> block_;
};

/// Throws LimitExceeded if memory runs out.
[[nodiscard]] HOCKET_API Memory allocate(const Communicator& communicator, std::size_t bytes);

}  // namespace hocket::inline v1
