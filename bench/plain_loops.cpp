#include "plain_loops.hpp"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include "base/small_float.hpp"

namespace hocket::bench::LOOPS {

std::size_t read_both(const void* a, const void* b, std::size_t bytes);

namespace {

template <class T>
struct IsComplex : std::false_type {};
template <class T>
struct IsComplex<std::complex<T>> : std::true_type {};

template <class T>
struct IsSmallFloat : std::false_type {};
template <DataType type, class Bits>
struct IsSmallFloat<SmallFloat<type, Bits>> : std::true_type {};

template <ReduceOp op, class T>
T apply(T a, T b) {
  if constexpr (IsSmallFloat<T>::value) {
    constexpr SmallFloatFormat format = format_of(data_type_of<T>);
    const float result =
        apply<op>(small_float::decode(format, a.bits), small_float::decode(format, b.bits));
    T stored;
    stored.bits = static_cast<decltype(stored.bits)>(small_float::encode(format, result));
    return stored;
  } else if constexpr (op == ReduceOp::average && IsComplex<T>::value) {
    return a / static_cast<typename T::value_type>(scaling);
  } else if constexpr (op == ReduceOp::premul_sum && IsComplex<T>::value) {
    return a * static_cast<typename T::value_type>(scaling);
  } else if constexpr (op == ReduceOp::average) {
    return static_cast<T>(a / static_cast<T>(scaling));
  } else if constexpr (op == ReduceOp::premul_sum) {
    return static_cast<T>(a * static_cast<T>(scaling));
  } else if constexpr (op == ReduceOp::sum) {
    return static_cast<T>(a + b);
  } else if constexpr (op == ReduceOp::product && IsComplex<T>::value) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  } else if constexpr (op == ReduceOp::product) {
    return static_cast<T>(a * b);
  } else if constexpr (op == ReduceOp::min) {
    return std::min(a, b);
  } else if constexpr (op == ReduceOp::max) {
    return std::max(a, b);
  } else if constexpr (op == ReduceOp::bit_and) {
    return static_cast<T>(a & b);
  } else if constexpr (op == ReduceOp::bit_or) {
    return static_cast<T>(a | b);
  } else if constexpr (op == ReduceOp::bit_xor) {
    return static_cast<T>(a ^ b);
  } else if constexpr (op == ReduceOp::logical_and) {
    return static_cast<T>(a && b);
  } else {
    return static_cast<T>(a || b);
  }
}

template <ReduceOp op, class T>
void loop(void* out, const void* a, const void* b, std::size_t count) {
  T* const to = static_cast<T*>(out);
  const T* const from_a = static_cast<const T*>(a);
  const T* const from_b = static_cast<const T*>(b);
  for (std::size_t i = 0; i < count; ++i) to[i] = apply<op>(from_a[i], from_b[i]);
}

template <class T>
PlainLoop find_for(ReduceOp op) {
  if (op == ReduceOp::sum) return loop<ReduceOp::sum, T>;
  if (op == ReduceOp::product) return loop<ReduceOp::product, T>;
  if constexpr (!std::is_same_v<T, bool>) {
    if (op == ReduceOp::average) return loop<ReduceOp::average, T>;
    if (op == ReduceOp::premul_sum) return loop<ReduceOp::premul_sum, T>;
  }
  if constexpr (!IsComplex<T>::value) {
    if (op == ReduceOp::min) return loop<ReduceOp::min, T>;
    if (op == ReduceOp::max) return loop<ReduceOp::max, T>;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::bit_and) return loop<ReduceOp::bit_and, T>;
    if (op == ReduceOp::bit_or) return loop<ReduceOp::bit_or, T>;
    if (op == ReduceOp::bit_xor) return loop<ReduceOp::bit_xor, T>;
    if (op == ReduceOp::logical_and) return loop<ReduceOp::logical_and, T>;
    if (op == ReduceOp::logical_or) return loop<ReduceOp::logical_or, T>;
  }
  return nullptr;
}

/// The loop for the C++ type whose data type is the one asked for.
template <class First, class... Rest>
PlainLoop find_among(DataType type, ReduceOp op) {
  if (type == data_type_of<First>) return find_for<First>(op);
  if constexpr (sizeof...(Rest) > 0) return find_among<Rest...>(type, op);
  return nullptr;
}

}  // namespace

PlainLoop find_loop(DataType type, ReduceOp op) {
  return find_among<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                    std::uint32_t, std::int64_t, std::uint64_t, float16, bfloat16, float8_e4m3,
                    float8_e5m2, float, double, bool, std::complex<float>, std::complex<double>>(
      type, op);
}

std::size_t read_both(const void* a, const void* b, std::size_t bytes) {
  const auto* const from_a = static_cast<const std::size_t*>(a);
  const auto* const from_b = static_cast<const std::size_t*>(b);
  std::size_t all = 0;
  for (std::size_t i = 0; i < bytes / sizeof(std::size_t); ++i) all ^= from_a[i] ^ from_b[i];
  return all;
}

}  // namespace hocket::bench::LOOPS
