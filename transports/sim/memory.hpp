// The memory of an op: filled, read, written, and known again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hocket/transport.hpp"

#include "base/rng.hpp"

namespace hocket::simulated {

/// Fills it with noise.
void poison(std::span<std::byte> memory, SeededRandom& random) noexcept;

/// An op's first part and its rest, as one.
struct Memory {
  MemoryPart first = {};
  MemoryPart rest = {};

  [[nodiscard]] std::uint64_t bytes() const noexcept { return first.bytes + rest.bytes; }
  /// The same as long as no byte of it changes.
  [[nodiscard]] std::uint64_t print() const noexcept;
  void poison(SeededRandom& random) const noexcept;
};

/// Copies so many bytes that lie behind the first `offset` of each; both have them.
void copy(const Memory& from, const Memory& to, std::uint64_t offset, std::uint64_t bytes) noexcept;

}  // namespace hocket::simulated
