// The small floating-point formats: what tells them apart, and their conversions from and to f32.
#pragma once

#include <bit>
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
  /// The bits of an f32's mantissa that this format has no room for.
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

/// The type must be one of the four.
constexpr SmallFloatFormat format_of(DataType type) noexcept {
  switch (type) {
    case DataType::f16:
      return {.mantissa_bits = 10, .exponent_bits = 5, .has_infinity = true};
    case DataType::bf16:
      return {.mantissa_bits = 7, .exponent_bits = 8, .has_infinity = true};
    case DataType::f8e4m3:
      return {.mantissa_bits = 3, .exponent_bits = 4, .has_infinity = false};
    case DataType::f8e5m2:
      return {.mantissa_bits = 2, .exponent_bits = 5, .has_infinity = true};
    default:
      __builtin_unreachable();  // in a constant expression: does not compile
  }
}

namespace small_float {

inline constexpr std::uint32_t f32_infinity = 0x7f800000;
inline constexpr std::uint32_t f32_nan = 0x7fc00000;

/// The nearest code, ties to even. What is too large becomes infinity, or NaN without one.
constexpr std::uint32_t encode(SmallFloatFormat format, float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  const std::uint32_t sign = (bits >> 31) != 0 ? format.sign_bit() : 0;
  if (magnitude > f32_infinity) return format.nan_code();

  const auto dropped = static_cast<std::uint32_t>(format.dropped_bits());
  const auto rebias = static_cast<std::uint32_t>(127 - format.bias());
  std::uint32_t code = 0;
  if (rebias > 0 && magnitude < (rebias + 1) << 23) {
    // Below the smallest normal number: let the addition of a power of two, whose last mantissa bit
    // weighs as much as the format's smallest number, do the rounding.
    const std::uint32_t aligner = (rebias + dropped + 1) << 23;
    const float aligned = std::bit_cast<float>(magnitude) + std::bit_cast<float>(aligner);
    code = std::bit_cast<std::uint32_t>(aligned) - aligner;
  } else {
    const std::uint32_t half_less_one = (1u << (dropped - 1)) - 1;
    const std::uint32_t last_kept_bit = (magnitude >> dropped) & 1;
    code =
        ((magnitude + half_less_one + last_kept_bit) >> dropped) - (rebias << format.mantissa_bits);
  }
  if (code < format.overflow_code()) return sign | code;
  return format.has_infinity ? sign | format.overflow_code() : format.nan_code();
}

constexpr float decode(SmallFloatFormat format, std::uint32_t code) noexcept {
  const std::uint32_t sign = (code & format.sign_bit()) != 0 ? 0x80000000 : 0;
  const std::uint32_t magnitude = code & (format.sign_bit() - 1);
  if (magnitude > format.overflow_code() || magnitude == format.nan_code()) {
    return std::bit_cast<float>(sign | f32_nan);
  }
  if (format.has_infinity && magnitude == format.overflow_code()) {
    return std::bit_cast<float>(sign | f32_infinity);
  }
  const auto rebias = static_cast<std::uint32_t>(127 - format.bias());
  const std::uint32_t shifted = magnitude << format.dropped_bits();
  if (rebias == 0 || magnitude >= 1u << format.mantissa_bits) {
    return std::bit_cast<float>(sign | (shifted + (rebias << 23)));
  }
  // A number without the leading 1: put there, and then taken away again. Unlike a subnormal f32
  // that is multiplied, this holds where the processor is told to treat those as zero.
  const std::uint32_t leading_one = (rebias + 1) << 23;
  const float value =
      std::bit_cast<float>(shifted + leading_one) - std::bit_cast<float>(leading_one);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

}  // namespace small_float
}  // namespace hocket
