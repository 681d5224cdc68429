#include "support/reference.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace hocket::testing {
namespace {

__extension__ using Wide = __float128;
__extension__ using WideInteger = unsigned __int128;

// --- floating point
// -------------------------------------------------------------------------------

template <class T>
T one_nan(T value) {
  return std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
}

/// min and max of numbers in which -0 is less than +0 and a NaN wins.
template <class T>
T extreme(T a, T b, bool least) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  const bool a_is_less = a == b ? std::signbit(a) : a < b;
  return a_is_less == least ? a : b;
}

// Twice the precision and two bits more make one rounding of two harmless: double for float, Wide
// for double.
template <class T>
using Wider = std::conditional_t<std::is_same_v<T, float>, double, Wide>;

template <class T>
T combine_floats(ReduceOp op, T a, T b) {
  const auto x = static_cast<Wider<T>>(a);
  const auto y = static_cast<Wider<T>>(b);
  if (op == ReduceOp::sum) return one_nan(static_cast<T>(x + y));
  if (op == ReduceOp::product) return one_nan(static_cast<T>(x * y));
  return extreme(a, b, op == ReduceOp::min);
}

// --- small floats
// ---------------------------------------------------------------------------------

/// Every value of a format, from its definition.
class SmallFloats {
 public:
  SmallFloats(int exponent_bits, int mantissa_bits, bool has_infinity)
      : sign_(1u << (exponent_bits + mantissa_bits)) {
    const int bias = (1 << (exponent_bits - 1)) - 1;
    for (unsigned code = 0; code < sign_; ++code) {
      const int exponent = static_cast<int>(code >> mantissa_bits);
      const int mantissa = static_cast<int>(code) & ((1 << mantissa_bits) - 1);
      const bool is_top = exponent == (1 << exponent_bits) - 1;
      const bool is_special =
          has_infinity ? is_top : is_top && mantissa == (1 << mantissa_bits) - 1;
      if (is_special) break;
      const double fraction = std::ldexp(mantissa, -mantissa_bits) + (exponent == 0 ? 0 : 1);
      finite_.push_back(std::ldexp(fraction, (exponent == 0 ? 1 : exponent) - bias));
    }
    const double largest = finite_.back();
    overflow_ = largest + (largest - finite_[finite_.size() - 2]) / 2;
    infinity_ = has_infinity ? static_cast<unsigned>(finite_.size()) : nan_without_infinity();
    nan_ = has_infinity ? infinity_ + (1u << (mantissa_bits - 1)) : nan_without_infinity();
    has_infinity_ = has_infinity;
  }

  [[nodiscard]] double decode(unsigned code) const {
    const unsigned magnitude = code & (sign_ - 1);
    double value = std::numeric_limits<double>::quiet_NaN();
    if (magnitude < finite_.size()) value = finite_[magnitude];
    if (has_infinity_ && magnitude == infinity_) value = std::numeric_limits<double>::infinity();
    return (code & sign_) != 0 ? -value : value;
  }

  /// The nearest value; of two as near the one with an even code.
  [[nodiscard]] unsigned encode(double value) const {
    if (std::isnan(value)) return nan_;
    const unsigned sign = std::signbit(value) ? sign_ : 0;
    const double magnitude = std::abs(value);
    const bool largest_is_even = finite_.size() % 2 == 1;
    if (magnitude > overflow_ || (magnitude == overflow_ && !largest_is_even)) {
      return has_infinity_ ? sign | infinity_ : nan_;
    }
    const auto above = std::ranges::lower_bound(finite_, magnitude);
    if (above == finite_.end()) return sign | static_cast<unsigned>(finite_.size() - 1);
    auto code = static_cast<unsigned>(above - finite_.begin());
    if (code > 0) {
      const double up = *above - magnitude;
      const double down = magnitude - finite_[code - 1];
      if (down < up || (down == up && code % 2 == 1)) --code;
    }
    return sign | code;
  }

 private:
  [[nodiscard]] unsigned nan_without_infinity() const { return sign_ - 1; }

  unsigned sign_;
  std::vector<double> finite_;  // by code, without the sign
  double overflow_ = 0;         // half-way from the largest one to what would come next
  unsigned infinity_ = 0;
  unsigned nan_ = 0;
  bool has_infinity_ = false;
};

const SmallFloats& small_floats(DataType type) {
  static const SmallFloats f16(5, 10, true);
  static const SmallFloats bf16(8, 7, true);
  static const SmallFloats f8e4m3(4, 3, false);
  static const SmallFloats f8e5m2(5, 2, true);
  if (type == DataType::f16) return f16;
  if (type == DataType::bf16) return bf16;
  return type == DataType::f8e4m3 ? f8e4m3 : f8e5m2;
}

unsigned combine_small_floats(DataType type, ReduceOp op, unsigned a, unsigned b) {
  const SmallFloats& format = small_floats(type);
  return format.encode(combine_floats<double>(op, format.decode(a), format.decode(b)));
}

// --- integers and bool
// ----------------------------------------------------------------------------

template <class T>
T combine_integers(ReduceOp op, T a, T b) {
  const auto x = static_cast<WideInteger>(a);
  const auto y = static_cast<WideInteger>(b);
  switch (op) {
    case ReduceOp::sum:
      return static_cast<T>(x + y);
    case ReduceOp::product:
      return static_cast<T>(x * y);
    case ReduceOp::min:
      return a < b ? a : b;
    case ReduceOp::max:
      return a < b ? b : a;
    case ReduceOp::bit_and:
      return static_cast<T>(x & y);
    case ReduceOp::bit_or:
      return static_cast<T>(x | y);
    case ReduceOp::bit_xor:
      return static_cast<T>(x ^ y);
    case ReduceOp::logical_and:
      return a != 0 && b != 0;
    default:
      return a != 0 || b != 0;
  }
}

std::uint8_t combine_bools(ReduceOp op, std::uint8_t a, std::uint8_t b) {
  const bool x = a != 0;
  const bool y = b != 0;
  switch (op) {
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::bit_and:
    case ReduceOp::logical_and:
      return x && y;
    case ReduceOp::bit_xor:
      return x != y;
    default:
      return x || y;
  }
}

// --- elements in memory
// ---------------------------------------------------------------------------

template <class T>
T load(const Bytes& from, std::size_t index) {
  T value;
  std::memcpy(&value, from.data() + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
void store(Bytes& to, std::size_t index, T value) {
  std::memcpy(to.data() + index * sizeof(T), &value, sizeof(T));
}

template <class T, class Function>
Bytes map(const Bytes& a, const Bytes& b, const Function& function) {
  Bytes out(a.size());
  for (std::size_t i = 0; i < a.size() / sizeof(T); ++i) {
    store<T>(out, i, static_cast<T>(function(load<T>(a, i), load<T>(b, i))));
  }
  return out;
}

/// Calls function with a value of the C++ type that holds one part of an element.
template <class Function>
auto with_part_type(DataType type, const Function& function) {
  switch (type) {
    case DataType::i8:
      return function(std::int8_t());
    case DataType::i16:
      return function(std::int16_t());
    case DataType::i32:
      return function(std::int32_t());
    case DataType::i64:
      return function(std::int64_t());
    case DataType::u16:
    case DataType::f16:
    case DataType::bf16:
      return function(std::uint16_t());
    case DataType::u32:
      return function(std::uint32_t());
    case DataType::u64:
      return function(std::uint64_t());
    case DataType::f32:
    case DataType::c64:
      return function(float());
    case DataType::f64:
    case DataType::c128:
      return function(double());
    default:
      return function(std::uint8_t());
  }
}

bool is_complex(DataType type) { return type == DataType::c64 || type == DataType::c128; }
bool is_small_float(DataType type) {
  return type == DataType::f16 || type == DataType::bf16 || type == DataType::f8e4m3 ||
         type == DataType::f8e5m2;
}

template <class T>
Bytes multiply_complex(const Bytes& a, const Bytes& b) {
  Bytes out(a.size());
  const auto product = [](T x, T y) { return combine_floats(ReduceOp::product, x, y); };
  for (std::size_t i = 0; i < a.size() / sizeof(T); i += 2) {
    const T a0 = load<T>(a, i), a1 = load<T>(a, i + 1), b0 = load<T>(b, i), b1 = load<T>(b, i + 1);
    store<T>(out, i, combine_floats<T>(ReduceOp::sum, product(a0, b0), -product(a1, b1)));
    store<T>(out, i + 1, combine_floats<T>(ReduceOp::sum, product(a0, b1), product(a1, b0)));
  }
  return out;
}

/// in[i] * factor with `divide` false, in[i] / factor with it true.
Bytes scale(DataType type, const Bytes& in, double factor, bool divide) {
  const auto in_float = [&](float value) {
    const auto by = static_cast<double>(static_cast<float>(factor));
    return static_cast<float>(divide ? value / by : value * by);
  };
  return with_part_type(type, [&]<class T>(T) {
    return map<T>(in, in, [&](T value, T) {
      if constexpr (std::is_same_v<T, float>) {
        return one_nan(in_float(value));
      } else if constexpr (std::is_same_v<T, double>) {
        return one_nan(divide ? value / factor : value * factor);
      } else {
        if (is_small_float(type)) {
          const SmallFloats& format = small_floats(type);
          const double decoded = format.decode(static_cast<unsigned>(value));
          return static_cast<T>(format.encode(in_float(static_cast<float>(decoded))));
        }
        const auto whole = static_cast<std::int64_t>(factor);
        if (!divide) return combine_integers<T>(ReduceOp::product, value, static_cast<T>(whole));
        __extension__ using Signed = __int128;
        return static_cast<T>(static_cast<Signed>(value) / whole);
      }
    });
  });
}

template <class T>
std::vector<T> special_parts() {
  using Limits = std::numeric_limits<T>;
  if constexpr (std::is_floating_point_v<T>) {
    std::vector<T> parts = {
        T(0), T(1),          Limits::infinity(),  Limits::denorm_min(), Limits::min(),
        T(3), Limits::max(), Limits::quiet_NaN(), Limits::epsilon(),    T(0.1)};
    parts.push_back(std::nextafter(Limits::min(), T(0)));
    const std::size_t positive = parts.size();
    for (std::size_t i = 0; i < positive; ++i) parts.push_back(-parts[i]);
    // NaNs with other payloads, which the result must not show
    if constexpr (sizeof(T) == 4) parts.push_back(std::bit_cast<T>(0xffc12345u));
    if constexpr (sizeof(T) == 8) parts.push_back(std::bit_cast<T>(0xfff8123456789abcu));
    return parts;
  } else {
    return {T(0),    T(1),    T(-1),   T(2),    Limits::max(),        Limits::min(),
            T(0x80), T(0x7f), T(0x7c), T(0x7e), T(Limits::max() - 1), T(Limits::max() / 2 + 1)};
  }
}

}  // namespace

bool is_defined(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::product:
      return true;
    case ReduceOp::min:
    case ReduceOp::max:
      return !is_complex(type);
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor:
    case ReduceOp::logical_and:
    case ReduceOp::logical_or:
      return type <= DataType::u64 || type == DataType::boolean;
    default:
      return false;
  }
}

Bytes reference_combine(DataType type, ReduceOp op, const Bytes& a, const Bytes& b) {
  if (op == ReduceOp::product && type == DataType::c64) return multiply_complex<float>(a, b);
  if (op == ReduceOp::product && type == DataType::c128) return multiply_complex<double>(a, b);
  return with_part_type(type, [&]<class T>(T) {
    return map<T>(a, b, [&](T x, T y) {
      if constexpr (std::is_floating_point_v<T>) {
        return combine_floats(op, x, y);
      } else {
        if (is_small_float(type)) {
          return static_cast<T>(
              combine_small_floats(type, op, static_cast<unsigned>(x), static_cast<unsigned>(y)));
        }
        if (type == DataType::boolean) {
          return static_cast<T>(
              combine_bools(op, static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(y)));
        }
        return combine_integers(op, x, y);
      }
    });
  });
}

Bytes reference_multiply(DataType type, const Bytes& in, double factor) {
  return scale(type, in, factor, false);
}

Bytes reference_divide(DataType type, const Bytes& in, int divisor) {
  return scale(type, in, divisor, true);
}

Bytes interesting_elements(DataType type, std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count * size_of(type));
  with_part_type(type, [&]<class T>(T) {
    const std::vector<T> special = special_parts<T>();
    for (std::size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
      const std::uint64_t bits = random();
      T part;
      std::memcpy(&part, &bits, sizeof(T));
      if (bits >> 62 <= 1) part = special[(bits >> 8) % special.size()];
      if constexpr (std::is_floating_point_v<T>) {
        if (bits >> 62 == 2) part = static_cast<T>(std::ldexp(double(bits % 2001) - 1000, -9));
      }
      store<T>(bytes, i, part);
    }
  });
  return bytes;
}

}  // namespace hocket::testing
