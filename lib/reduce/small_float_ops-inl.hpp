// Vectors of f16, bf16 and the 8-bit floats: to f32, an operation there, and back, rounded to
// nearest with ties to even. Lane by lane the bits of base/small_float.hpp. Compiled once for each
// instruction set.
#if defined(HOCKET_REDUCE_SMALL_FLOAT_OPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef HOCKET_REDUCE_SMALL_FLOAT_OPS_INL
#undef HOCKET_REDUCE_SMALL_FLOAT_OPS_INL
#else
#define HOCKET_REDUCE_SMALL_FLOAT_OPS_INL
#endif

#include <cstdint>

#include <hwy/highway.h>

#include "base/small_float.hpp"

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Where the machine has no instruction for it, Highway converts f16 in software, towards zero.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_NEON && HWY_ARCH_ARM_A64)
inline constexpr bool has_f16_instructions = true;
#else
inline constexpr bool has_f16_instructions = false;
#endif

/// Between stored lanes and as many lanes of f32.
template <DataType type>
struct Codec {
  static constexpr SmallFloatFormat format = format_of(type);
  static constexpr bool is_native = type == DataType::f16 && has_f16_instructions;
  static constexpr int dropped_bits = format.dropped_bits();
  static constexpr int sign_shift = 31 - format.mantissa_bits - format.exponent_bits;
  static constexpr std::uint32_t rebias = static_cast<std::uint32_t>(127 - format.bias());

  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> decode(D d, hn::Vec<D> stored) {
    const hn::Rebind<float, D> floats;
    if constexpr (is_native) {
      return hn::PromoteTo(floats, hn::BitCast(hn::Rebind<hwy::float16_t, D>(), stored));
    } else {
      return decode_by_bits(d, stored);
    }
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> encode(D d, hn::Vec<hn::Rebind<float, D>> value) {
    const hn::Rebind<float, D> floats;
    if constexpr (is_native) {
      const hn::Rebind<hwy::float16_t, D> halves;
      return hn::BitCast(d, hn::DemoteTo(halves, with_one_nan(floats, value)));
    } else {
      return encode_by_bits(d, value);
    }
  }

 private:
  template <class D>
  static HWY_INLINE hn::Vec<hn::Rebind<float, D>> decode_by_bits(D, hn::Vec<D> stored) {
    const hn::Rebind<float, D> floats;
    const hn::Rebind<std::uint32_t, D> bits;
    const auto code = hn::PromoteTo(bits, stored);
    const auto magnitude = hn::And(code, hn::Set(bits, format.sign_bit() - 1));
    const auto sign = hn::ShiftLeft<sign_shift>(hn::Xor(code, magnitude));
    const auto value = widen(bits, magnitude);
    // The largest exponent of all stands for infinity and NaN, and has become a lesser one.
    constexpr std::uint32_t first_special =
        format.has_infinity ? format.overflow_code() : format.nan_code();
    const auto is_special = hn::Gt(magnitude, hn::Set(bits, first_special - 1));
    const auto special = hn::Or(value, hn::Set(bits, 0x7f800000u));
    return hn::BitCast(floats, hn::Or(sign, hn::IfThenElse(is_special, special, value)));
  }

  /// The bits of an f32 of the same value, but for infinity and NaN.
  template <class DBits, class VBits>
  static HWY_INLINE VBits widen(DBits bits, VBits magnitude) {
    const auto shifted = hn::ShiftLeft<dropped_bits>(magnitude);
    if constexpr (rebias == 0) return shifted;

    // As base/small_float.hpp does it, a number without the leading 1 too.
    const hn::RebindToFloat<DBits> floats;
    const auto normal = hn::Add(shifted, hn::Set(bits, rebias << 23));
    const auto leading_one = hn::Set(bits, (rebias + 1) << 23);
    const auto with_one = hn::BitCast(floats, hn::Add(shifted, leading_one));
    const auto subnormal = hn::BitCast(bits, hn::Sub(with_one, hn::BitCast(floats, leading_one)));
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(bits, 1u << format.mantissa_bits));
    return hn::IfThenElse(is_subnormal, subnormal, normal);
  }

  template <class D>
  static HWY_INLINE hn::Vec<D> encode_by_bits(D d, hn::Vec<hn::Rebind<float, D>> value) {
    const hn::Rebind<std::uint32_t, D> bits;
    const auto all = hn::BitCast(bits, value);
    const auto magnitude = hn::And(all, hn::Set(bits, 0x7fffffffu));
    const auto sign = hn::ShiftRight<sign_shift>(hn::Xor(all, magnitude));
    const auto code = round(bits, magnitude);
    const auto overflow = hn::Set(bits, format.overflow_code());
    const auto nan = hn::Set(bits, format.nan_code());
    if constexpr (format.has_infinity) {
      const auto number = hn::Or(sign, hn::Min(code, overflow));
      const auto is_nan = hn::Gt(magnitude, hn::Set(bits, 0x7f800000u));
      return hn::TruncateTo(d, hn::IfThenElse(is_nan, nan, number));
    } else {
      return hn::TruncateTo(d, hn::IfThenElse(hn::Lt(code, overflow), hn::Or(sign, code), nan));
    }
  }

  /// The code nearest to the magnitude of an f32; larger than every finite code when there is none.
  template <class DBits, class VBits>
  static HWY_INLINE VBits round(DBits bits, VBits magnitude) {
    const auto half_less_one = hn::Set(bits, (1u << (dropped_bits - 1)) - 1);
    const auto last_kept_bit = hn::And(hn::ShiftRight<dropped_bits>(magnitude), hn::Set(bits, 1u));
    const auto rounded = hn::Add(magnitude, hn::Add(half_less_one, last_kept_bit));
    const auto normal = hn::Sub(hn::ShiftRight<dropped_bits>(rounded),
                                hn::Set(bits, rebias << format.mantissa_bits));
    if constexpr (rebias == 0) return normal;

    // Below the smallest normal number an addition does the rounding: small_float.hpp tells how.
    const hn::RebindToFloat<DBits> floats;
    const auto aligner =
        hn::Set(bits, (rebias + static_cast<std::uint32_t>(dropped_bits) + 1) << 23);
    const auto aligned = hn::Add(hn::BitCast(floats, magnitude), hn::BitCast(floats, aligner));
    const auto subnormal = hn::Sub(hn::BitCast(bits, aligned), aligner);
    const auto is_subnormal = hn::Lt(magnitude, hn::Set(bits, (rebias + 1) << 23));
    return hn::IfThenElse(is_subnormal, subnormal, normal);
  }
};

/// Does an operation on f32 vectors on stored lanes.
template <DataType type, class Op>
struct Through {
  Op op;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    const hn::Rebind<float, D> floats;
    const auto result = op(floats, Codec<type>::decode(d, a), Codec<type>::decode(d, b));
    return Codec<type>::encode(d, result);
  }
};

/// bf16 is the upper half of an f32, so that a vector of pairs is two vectors of f32 almost as it
/// stands: the even lanes shifted up, the odd ones with their lower neighbour masked off.
template <class Op>
struct Through<DataType::bf16, Op> {
  Op op;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    if constexpr (hn::MaxLanes(D()) == 1) {
      const hn::Rebind<float, D> floats;
      using One = Codec<DataType::bf16>;
      return One::encode(d, op(floats, One::decode(d, a), One::decode(d, b)));
    } else {
      const hn::RepartitionToWide<D> bits;
      const hn::RebindToFloat<hn::RepartitionToWide<D>> floats;
      const auto pairs_a = hn::BitCast(bits, a);
      const auto pairs_b = hn::BitCast(bits, b);
      const auto even = op(floats, hn::BitCast(floats, hn::ShiftLeft<16>(pairs_a)),
                           hn::BitCast(floats, hn::ShiftLeft<16>(pairs_b)));
      const auto upper = hn::Set(bits, 0xffff0000u);
      const auto odd = op(floats, hn::BitCast(floats, hn::And(pairs_a, upper)),
                          hn::BitCast(floats, hn::And(pairs_b, upper)));
      return hn::OddEven(hn::BitCast(d, round(bits, odd)),
                         hn::BitCast(d, hn::ShiftRight<16>(round(bits, even))));
    }
  }

 private:
  /// The bf16 nearest to an f32, in the upper half of its lane.
  template <class DBits, class V>
  static HWY_INLINE hn::Vec<DBits> round(DBits bits, V value) {
    const auto all = hn::BitCast(bits, value);
    const auto last_kept_bit = hn::And(hn::ShiftRight<16>(all), hn::Set(bits, 1u));
    const auto rounded = hn::Add(all, hn::Add(hn::Set(bits, 0x7fffu), last_kept_bit));
    const auto is_nan = hn::RebindMask(bits, hn::IsNaN(value));
    return hn::IfThenElse(is_nan, hn::Set(bits, 0x7fc00000u), rounded);
  }
};

}  // namespace hocket::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
