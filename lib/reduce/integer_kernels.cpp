// Kernels of the integers and bool.
#include "reduce/simd.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reduce/integer_kernels.cpp"
#include <hwy/foreach_target.h>

#include "reduce/families.hpp"
#include "reduce/integer_ops-inl.hpp"
#include "reduce/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace hocket::reduce::HWY_NAMESPACE {
namespace {

template <class T, class Op>
HWY_NOINLINE void combine_integers(void* out, const void* a, const void* b, std::size_t count) {
  combine(Tag<T>(), Op(), static_cast<T*>(out), static_cast<const T*>(a), static_cast<const T*>(b),
          count);
}

/// Bitwise ops do the same to elements of every size: all share the kernel for bytes.
template <class T, class Op>
void combine_bits(void* out, const void* a, const void* b, std::size_t count) {
  combine_integers<std::uint8_t, Op>(out, a, b, count * sizeof(T));
}

/// The ops that do not care for the sign; T is unsigned.
template <class T>
CombineKernel find_unsigned(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
      return combine_integers<T, IntegerSum>;
    case ReduceOp::product:
      return combine_integers<T, IntegerProduct>;
    case ReduceOp::min:
      return combine_integers<T, IntegerMin>;
    case ReduceOp::max:
      return combine_integers<T, IntegerMax>;
    case ReduceOp::bit_and:
      return combine_bits<T, BitAnd>;
    case ReduceOp::bit_or:
      return combine_bits<T, BitOr>;
    case ReduceOp::bit_xor:
      return combine_bits<T, BitXor>;
    case ReduceOp::logical_and:
      return combine_integers<T, LogicalAnd>;
    case ReduceOp::logical_or:
      return combine_integers<T, LogicalOr>;
    default:
      return nullptr;
  }
}

template <class T>
CombineKernel find_signed(ReduceOp op) {
  if (op == ReduceOp::min) return combine_integers<T, IntegerMin>;
  if (op == ReduceOp::max) return combine_integers<T, IntegerMax>;
  return find_unsigned<std::make_unsigned_t<T>>(op);
}

/// As numbers modulo nothing: 1 + 1 is 1, any byte but 0 is true, and results are 0 or 1.
CombineKernel find_bool(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bit_or:
    case ReduceOp::logical_or:
      return combine_integers<std::uint8_t, LogicalOr>;
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::bit_and:
    case ReduceOp::logical_and:
      return combine_integers<std::uint8_t, LogicalAnd>;
    case ReduceOp::bit_xor:
      return combine_integers<std::uint8_t, LogicalXor>;
    default:
      return nullptr;
  }
}

CombineKernel find_combine(DataType type, ReduceOp op) {
  switch (type) {
    case DataType::i8:
      return find_signed<std::int8_t>(op);
    case DataType::u8:
      return find_unsigned<std::uint8_t>(op);
    case DataType::i16:
      return find_signed<std::int16_t>(op);
    case DataType::u16:
      return find_unsigned<std::uint16_t>(op);
    case DataType::i32:
      return find_signed<std::int32_t>(op);
    case DataType::u32:
      return find_unsigned<std::uint32_t>(op);
    case DataType::i64:
      return find_signed<std::int64_t>(op);
    case DataType::u64:
      return find_unsigned<std::uint64_t>(op);
    case DataType::boolean:
      return find_bool(op);
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace hocket::reduce::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cstring>

namespace hocket::reduce {
namespace {

/// The low bits of in[i] * factor, or in[i] / factor rounded towards zero. Once for each operation,
/// not for each step, so that plain code does.
template <class T, Scaling scaling>
void scale_integers(void* out, const void* in, std::size_t count, double factor) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto whole = static_cast<std::int64_t>(factor);
  for (std::size_t i = 0; i < count; ++i) {
    T value;  // through memcpy from bytes, which needs no alignment
    std::memcpy(&value, static_cast<const std::byte*>(in) + i * sizeof value, sizeof value);
    if constexpr (scaling == Scaling::multiply) {
      value = static_cast<T>(static_cast<Unsigned>(static_cast<std::uint64_t>(value) *
                                                   static_cast<std::uint64_t>(whole)));
    } else if constexpr (std::is_signed_v<T>) {
      value = static_cast<T>(value / whole);
    } else {
      value = static_cast<T>(value / static_cast<std::uint64_t>(whole));
    }
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof value, &value, sizeof value);
  }
}

template <class T>
ScaleKernel choose_scale(Scaling scaling) {
  return scaling == Scaling::multiply ? scale_integers<T, Scaling::multiply>
                                      : scale_integers<T, Scaling::divide>;
}

HWY_EXPORT(find_combine);

}  // namespace

CombineKernel find_integer_combine(DataType type, ReduceOp op, long long target) {
  return HWY_DISPATCH_TABLE(find_combine)[table_index(target)](type, op);
}

ScaleKernel find_integer_scale(DataType type, Scaling scaling) {
  switch (type) {
    case DataType::i8:
      return choose_scale<std::int8_t>(scaling);
    case DataType::u8:
      return choose_scale<std::uint8_t>(scaling);
    case DataType::i16:
      return choose_scale<std::int16_t>(scaling);
    case DataType::u16:
      return choose_scale<std::uint16_t>(scaling);
    case DataType::i32:
      return choose_scale<std::int32_t>(scaling);
    case DataType::u32:
      return choose_scale<std::uint32_t>(scaling);
    case DataType::i64:
      return choose_scale<std::int64_t>(scaling);
    case DataType::u64:
      return choose_scale<std::uint64_t>(scaling);
    default:
      return nullptr;
  }
}

}  // namespace hocket::reduce
#endif
