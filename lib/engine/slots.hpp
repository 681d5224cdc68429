// Places where messages arrive that are to be reduced: all of one size, used again and again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hocket::engine {

class Slots {
 public:
  explicit Slots(std::uint64_t bytes) noexcept : bytes_(bytes) {}

  [[nodiscard]] std::uint32_t take() {
    if (free_.empty()) add();
    const std::uint32_t slot = free_.back();  // the one used last is still in the cache
    free_.pop_back();
    return slot;
  }
  void give_back(std::uint32_t slot) noexcept { free_.push_back(slot); }
  [[nodiscard]] std::byte* memory(std::uint32_t slot) const noexcept { return slots_[slot].get(); }

 private:
  void add() {
    free_.reserve(slots_.size() + 1);  // so that give_back() needs no memory
    // Not value-initialised: pages that no message reaches are never touched.
    slots_.push_back(std::unique_ptr<std::byte[]>(new std::byte[bytes_]));
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }

  std::uint64_t bytes_;
  std::vector<std::unique_ptr<std::byte[]>> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace hocket::engine
