#include <bit>

#include "base/small_float_format.hpp"

namespace hocket::inline v0 {
namespace {

constexpr std::uint32_t f32_infinity = 0x7f800000;
constexpr std::uint32_t f32_nan = 0x7fc00000;

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
  // In an f32's place the exponent is too small by the difference of the biases; the product makes
  // it right, for subnormal numbers too. bf16 has an f32's bias and needs none of it.
  const float shifted = std::bit_cast<float>(magnitude << format.dropped_bits());
  const float scale = std::bit_cast<float>(static_cast<std::uint32_t>(254 - format.bias()) << 23);
  const float value = format.bias() == 127 ? shifted : shifted * scale;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
}

}  // namespace

template <DataType type, std::unsigned_integral Bits>
SmallFloat<type, Bits>::SmallFloat(float value) noexcept
    : bits(static_cast<Bits>(encode(format_of(type), value))) {}

template <DataType type, std::unsigned_integral Bits>
SmallFloat<type, Bits>::operator float() const noexcept {
  return decode(format_of(type), bits);
}

template struct SmallFloat<DataType::f16, std::uint16_t>;
template struct SmallFloat<DataType::bf16, std::uint16_t>;
template struct SmallFloat<DataType::f8e4m3, std::uint8_t>;
template struct SmallFloat<DataType::f8e5m2, std::uint8_t>;

}  // namespace hocket::inline v0
