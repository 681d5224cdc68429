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

namespace hocket::inline v0 {

/// Memory of the host that belongs to this object, zeroed, and aligned for any instruction.
/// Adapters know it while it lives, so they move it without copies from the first operation on. Any
/// communicator may use it. It must outlive the operations on it.
class HOCKET_API Memory {
 public:
  Memory() noexcept;  // of no bytes
  explicit Memory(std::unique_ptr<comm::MemoryBlock> block) noexcept;
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  /// Null for no bytes.
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

/// For operations of this communicator's world. Throws LimitExceeded without memory.
[[nodiscard]] HOCKET_API Memory allocate(const Communicator& communicator, std::size_t bytes);

}  // namespace hocket::inline v0
