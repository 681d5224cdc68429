// Data types and reduction operations: the values that collectives work on.
#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>

#include "hocket/export.h"
#include "hocket/hocket.h"

namespace hocket::inline v1 {

enum class DataType : std::int32_t {
  i8 = HOCKET_I8,
  u8 = HOCKET_U8,
  i16 = HOCKET_I16,
  u16 = HOCKET_U16,
  i32 = HOCKET_I32,
  u32 = HOCKET_U32,
  i64 = HOCKET_I64,
  u64 = HOCKET_U64,
  f16 = HOCKET_F16,
  bf16 = HOCKET_BF16,
  f8e4m3 = HOCKET_F8E4M3,
  f8e5m2 = HOCKET_F8E5M2,
  f32 = HOCKET_F32,
  f64 = HOCKET_F64,
  boolean = HOCKET_BOOL,
  c64 = HOCKET_C64,
  c128 = HOCKET_C128,
};

/// Elements of so many bytes, whatever they are: for moving, and for a custom op. From 1 to
/// HOCKET_BYTES_MAX; for any other number operations refuse the type. A type of your own can have
/// one as its DataTypeOf.
[[nodiscard]] constexpr DataType bytes_type(std::size_t bytes) noexcept {
  const bool is_one = bytes <= HOCKET_BYTES_MAX;
  return static_cast<DataType>(HOCKET_BYTES(is_one ? static_cast<std::int32_t>(bytes) : 0));
}

enum class ReduceOp : std::int32_t {
  sum = HOCKET_OP_SUM,
  product = HOCKET_OP_PRODUCT,
  min = HOCKET_OP_MIN,
  max = HOCKET_OP_MAX,
  average = HOCKET_OP_AVERAGE,
  premul_sum = HOCKET_OP_PREMUL_SUM,
  bit_and = HOCKET_OP_BIT_AND,
  bit_or = HOCKET_OP_BIT_OR,
  bit_xor = HOCKET_OP_BIT_XOR,
  logical_and = HOCKET_OP_LOGICAL_AND,
  logical_or = HOCKET_OP_LOGICAL_OR,
  custom = HOCKET_OP_CUSTOM,
};

/// Every value once, in the order of their numbers.
[[nodiscard]] HOCKET_API std::span<const DataType> all_data_types() noexcept;
[[nodiscard]] HOCKET_API std::span<const ReduceOp> all_reduce_ops() noexcept;

/// "f32", "sum", …; "bytes" for a bytes_type(); "unknown" for a value that is none of these.
[[nodiscard]] HOCKET_API std::string_view name(DataType type) noexcept;
[[nodiscard]] HOCKET_API std::string_view name(ReduceOp op) noexcept;

/// Understands our names and the usual others ("float", "half", "int32", "prod", "avg", …).
[[nodiscard]] HOCKET_API std::optional<DataType> parse_data_type(std::string_view text) noexcept;
[[nodiscard]] HOCKET_API std::optional<ReduceOp> parse_reduce_op(std::string_view text) noexcept;

/// Bytes of one element; 0 for a value that is neither one of the enumerators nor a bytes_type().
[[nodiscard]] HOCKET_API std::size_t size_of(DataType type) noexcept;

/// A floating-point number of 16 or 8 bits. It only stores: convert to float to compute. Conversion
/// from float rounds to nearest, ties to even; what is too large becomes infinity, or NaN for
/// f8e4m3, which has no infinity.
template <DataType type, std::unsigned_integral Bits>
struct SmallFloat {
  SmallFloat() = default;
  /// Conversions are explicit, because both ways may cost precision or time.
  HOCKET_API explicit SmallFloat(float value) noexcept;
  HOCKET_API explicit operator float() const noexcept;

  Bits bits = 0;
};

using float16 = SmallFloat<DataType::f16, std::uint16_t>;
using bfloat16 = SmallFloat<DataType::bf16, std::uint16_t>;
using float8_e4m3 = SmallFloat<DataType::f8e4m3, std::uint8_t>;
using float8_e5m2 = SmallFloat<DataType::f8e5m2, std::uint8_t>;

/// The DataType of a C++ type. Specialise it for a type of your own with the same representation,
/// or for any that may be copied as bytes: `value = bytes_type(sizeof(T))`.
template <class T>
struct DataTypeOf;

template <std::signed_integral T>
struct DataTypeOf<T> {
  static_assert(sizeof(T) <= 8, "hocket has no integers wider than 64 bits");
  static constexpr DataType value = sizeof(T) == 1   ? DataType::i8
                                    : sizeof(T) == 2 ? DataType::i16
                                    : sizeof(T) == 4 ? DataType::i32
                                                     : DataType::i64;
};

template <std::unsigned_integral T>
struct DataTypeOf<T> {
  static_assert(sizeof(T) <= 8, "hocket has no integers wider than 64 bits");
  static constexpr DataType value = sizeof(T) == 1   ? DataType::u8
                                    : sizeof(T) == 2 ? DataType::u16
                                    : sizeof(T) == 4 ? DataType::u32
                                                     : DataType::u64;
};

template <DataType type>
using DataTypeConstant = std::integral_constant<DataType, type>;

template <>
struct DataTypeOf<bool> : DataTypeConstant<DataType::boolean> {};
template <>
struct DataTypeOf<float> : DataTypeConstant<DataType::f32> {};
template <>
struct DataTypeOf<double> : DataTypeConstant<DataType::f64> {};
template <>
struct DataTypeOf<std::complex<float>> : DataTypeConstant<DataType::c64> {};
template <>
struct DataTypeOf<std::complex<double>> : DataTypeConstant<DataType::c128> {};
template <DataType type, class Bits>
struct DataTypeOf<SmallFloat<type, Bits>> : DataTypeConstant<type> {};

/// A type whose values collectives can move and reduce.
template <class T>
concept Element = requires {
  { DataTypeOf<T>::value } -> std::convertible_to<DataType>;
};

template <Element T>
inline constexpr DataType data_type_of = DataTypeOf<T>::value;

/// Memory of elements: a vector, an array, a span or any other contiguous range of them.
template <class Range>
concept ElementRange = std::ranges::contiguous_range<Range> && std::ranges::sized_range<Range> &&
    Element<std::ranges::range_value_t<Range>>;

template <ElementRange Range>
using ElementOf = std::ranges::range_value_t<Range>;

/// An ElementRange that can be written to.
template <class Range>
concept WritableElementRange = ElementRange<Range> &&
    !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;

/// A WritableElementRange that can take the output of an operation whose input is an `In`.
template <class Range, class In>
concept OutputFor = WritableElementRange<Range> && std::same_as<ElementOf<Range>, ElementOf<In>>;

/// A stretch of memory that is part of an operation's input or output.
struct Piece {
  void* data = nullptr;
  std::size_t count = 0;
};

}  // namespace hocket::inline v1
