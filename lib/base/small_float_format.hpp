// What tells the small floating-point formats apart, for the scalar and the SIMD conversions alike.
#pragma once

#include <cstdint>

#include "hocket/types.hpp"

namespace hocket {

struct SmallFloatFormat {
  int mantissa_bits;
  int exponent_bits;
  bool has_infinity;  // if not, the largest exponent holds numbers, and one mantissa of it NaN

  [[nodiscard]] constexpr std::uint32_t sign_bit() const noexcept {
    return 1u << (mantissa_bits + exponent_bits);
  }
  /// The place of an f32's first mantissa bit that this format has no room for, counted from the
  /// top.
  [[nodiscard]] constexpr int dropped_bits() const noexcept { return 23 - mantissa_bits; }
  [[nodiscard]] constexpr int bias() const noexcept { return (1 << (exponent_bits - 1)) - 1; }
  /// The code of infinity; without one, of the only NaN. Every finite magnitude is below it.
  [[nodiscard]] constexpr std::uint32_t overflow_code() const noexcept {
    return has_infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : sign_bit() - 1;
  }
  /// The quiet NaN that every result that is not a number becomes.
  [[nodiscard]] constexpr std::uint32_t nan_code() const noexcept {
    return has_infinity ? overflow_code() | (1u << (mantissa_bits - 1)) : overflow_code();
  }
};

constexpr SmallFloatFormat format_of(DataType type) noexcept {
  switch (type) {
    case DataType::bf16:
      return {.mantissa_bits = 7, .exponent_bits = 8, .has_infinity = true};
    case DataType::f8e4m3:
      return {.mantissa_bits = 3, .exponent_bits = 4, .has_infinity = false};
    case DataType::f8e5m2:
      return {.mantissa_bits = 2, .exponent_bits = 5, .has_infinity = true};
    default:
      return {.mantissa_bits = 10, .exponent_bits = 5, .has_infinity = true};
  }
}

}  // namespace hocket
