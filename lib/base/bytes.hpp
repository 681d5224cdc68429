// Byte buffers: integers in them, little-endian on every machine, and their bytes as a text.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

namespace hocket {

/// The bytes of value in the opposite order.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T reverse_bytes(T value) noexcept {
  static_assert(sizeof(T) <= 8);
  if constexpr (sizeof(T) == 1) return value;
  if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
  if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
  if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
}

/// Between the machine's order and little-endian; its own inverse.
template <std::unsigned_integral T>
[[nodiscard]] constexpr T little_endian(T value) noexcept {
  return std::endian::native == std::endian::little ? value : reverse_bytes(value);
}

/// Writes sizeof(T) bytes at `to`, which needs no alignment.
template <std::unsigned_integral T>
void store_little_endian(std::byte* to, T value) noexcept {
  const T ordered = little_endian(value);
  std::memcpy(to, &ordered, sizeof ordered);
}

/// Reads sizeof(T) bytes at `from`, which needs no alignment.
template <std::unsigned_integral T>
[[nodiscard]] T load_little_endian(const std::byte* from) noexcept {
  T ordered;
  std::memcpy(&ordered, from, sizeof ordered);
  return little_endian(ordered);
}

/// The bytes as a text that borrows them.
[[nodiscard]] inline std::string_view as_text(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace hocket
