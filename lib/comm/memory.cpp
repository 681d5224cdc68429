#include "hocket/memory.hpp"

#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include "base/exception.hpp"
#include "base/limits.hpp"
#include "comm/group.hpp"

namespace hocket::comm {
namespace {

/// A page, so that no adapter maps a neighbour's memory with it.
constexpr std::align_val_t alignment{4096};

}  // namespace

class MemoryBlock {
 public:
  /// Throws std::bad_alloc if memory runs out.
  MemoryBlock(std::shared_ptr<Group> group, std::size_t bytes)
      : group_(std::move(group)),
        memory_{.data = take(bytes), .bytes = bytes, .may_receive = true} {
    std::memset(data(), 0, bytes);
    if (is_registered()) group_->engine().register_memory(memory_);
  }
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;
  ~MemoryBlock() {
    if (is_registered()) group_->engine().deregister_memory(memory_);
    ::operator delete(data(), alignment);
  }

  [[nodiscard]] bool is_inherited() const noexcept { return group_->is_inherited(); }
  [[nodiscard]] std::byte* data() const noexcept { return const_cast<std::byte*>(memory_.data); }
  [[nodiscard]] std::size_t size() const noexcept { return memory_.bytes; }

 private:
  /// Sizes that the system's arithmetic would wrap around are refused.
  [[nodiscard]] static std::byte* take(std::size_t bytes) {
    if (bytes > PTRDIFF_MAX) throw std::bad_alloc();
    return static_cast<std::byte*>(::operator new(bytes, alignment));
  }
  /// Less is copied anyway.
  [[nodiscard]] bool is_registered() const noexcept {
    return memory_.bytes >= limits::registered_bytes_min;
  }

  const std::shared_ptr<Group> group_;
  const RegisteredMemory memory_;
};

}  // namespace hocket::comm

namespace hocket::inline v1 {

Memory::Memory() noexcept = default;
Memory::Memory(std::unique_ptr<comm::MemoryBlock> block) noexcept : block_(std::move(block)) {}
Memory::Memory(Memory&& other) noexcept = default;
Memory& Memory::operator=(Memory&& other) noexcept {
  const Memory former(std::move(*this));
  block_ = std::move(other.block_);
  return *this;
}

Memory::~Memory() {
  if (block_ != nullptr && block_->is_inherited()) abandon(block_);
}

std::byte* Memory::data() const noexcept { return block_ == nullptr ? nullptr : block_->data(); }
std::size_t Memory::size() const noexcept { return block_ == nullptr ? 0 : block_->size(); }

Memory allocate(const Communicator& communicator, std::size_t bytes) {
  const std::shared_ptr<comm::Group>& group = communicator.group_;
  group->check_process();
  return as_errors([&] { return Memory(std::make_unique<comm::MemoryBlock>(group, bytes)); });
}

}  // namespace hocket::inline v1
