// The scalar conversions against the definition of the formats: every code is decoded in double,
// and every encoding is searched among those values.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include <fmt/format.h>

#include "hocket/types.hpp"

#include "support/catch.hpp"

namespace {

using SmallFloats =
    std::tuple<hocket::float16, hocket::bfloat16, hocket::float8_e4m3, hocket::float8_e5m2>;

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  std::uint32_t infinity;  // 0 for none
  std::uint32_t nan;
};

template <class T>
constexpr Format format_of{};
template <>
constexpr Format format_of<hocket::float16>{5, 10, 15, 0x7c00, 0x7e00};
template <>
constexpr Format format_of<hocket::bfloat16>{8, 7, 127, 0x7f80, 0x7fc0};
template <>
constexpr Format format_of<hocket::float8_e4m3>{4, 3, 7, 0, 0x7f};
template <>
constexpr Format format_of<hocket::float8_e5m2>{5, 2, 15, 0x7c, 0x7e};

/// What the numbers of a format are worth, in order, so that a number's place is its code.
template <class T>
class Oracle {
 public:
  Oracle() {
    for (std::uint32_t code = 0; code <= overflow_; ++code) values_.push_back(finite(code));
  }

  [[nodiscard]] double decode(std::uint32_t code) const {
    const double sign = (code & sign_bit_) != 0 ? -1 : 1;
    const std::uint32_t magnitude = code & (sign_bit_ - 1);
    if (magnitude < overflow_) return sign * values_[magnitude];
    if (magnitude == format_.infinity) return sign * std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }

  [[nodiscard]] std::uint32_t encode(float value) const {
    if (std::isnan(value)) return format_.nan;
    const std::uint32_t magnitude = nearest(std::fabs(double{value}));
    if (magnitude == overflow_ && format_.infinity == 0) return format_.nan;
    return magnitude | (std::signbit(value) ? sign_bit_ : 0);
  }

  /// The finite values, and the next one that the format has no room for.
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  /// By definition, and beyond the largest exponent as if there were more.
  [[nodiscard]] static double finite(std::uint32_t code) {
    const auto exponent = static_cast<int>(code >> format_.mantissa_bits);
    const auto mantissa = static_cast<double>(code & ((1u << format_.mantissa_bits) - 1));
    if (exponent == 0) return std::ldexp(mantissa, 1 - format_.bias - format_.mantissa_bits);
    const double one = std::ldexp(1.0, format_.mantissa_bits);
    return std::ldexp(one + mantissa, exponent - format_.bias - format_.mantissa_bits);
  }

  /// The code of the nearest value, the even one of two; overflow_ from halfway beyond the largest.
  [[nodiscard]] std::uint32_t nearest(double value) const {
    const auto above = std::ranges::lower_bound(values_, value);
    if (above == values_.end()) return overflow_;
    const auto upper = static_cast<std::uint32_t>(above - values_.begin());
    if (*above == value) return upper;
    const double middle = (values_[upper - 1] + *above) / 2;
    if (value == middle) return upper - upper % 2;
    return value < middle ? upper - 1 : upper;
  }

  static constexpr Format format_ = format_of<T>;
  static constexpr std::uint32_t sign_bit_ = 1u << (format_.exponent_bits + format_.mantissa_bits);
  static constexpr std::uint32_t overflow_ = format_.infinity != 0 ? format_.infinity : format_.nan;
  std::vector<double> values_;
};

template <class T>
constexpr std::uint32_t codes = 1u << (8 * sizeof(T));

template <class T>
T from_code(std::uint32_t code) {
  T value;
  value.bits = static_cast<decltype(value.bits)>(code);
  return value;
}

/// The first float that is encoded wrongly, in words; empty for none.
template <class T>
std::string first_wrong(const Oracle<T>& oracle, const std::vector<float>& floats) {
  for (const float value : floats) {
    const std::uint32_t code = T(value).bits;
    const std::uint32_t expected = oracle.encode(value);
    if (code == expected) continue;
    return fmt::format("{} ({:#010x}) became {:#x} instead of {:#x}", value,
                       std::bit_cast<std::uint32_t>(value), code, expected);
  }
  return "";
}

/// Each value, its neighbours among floats, and the same below zero.
std::vector<float> with_neighbours(const std::vector<double>& values) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> floats;
  for (const double value : values) {
    const auto middle = static_cast<float>(value);
    for (const float each :
         {middle, std::nextafter(middle, infinity), std::nextafter(middle, 0.0f)}) {
      floats.push_back(each);
      floats.push_back(-each);
    }
  }
  return floats;
}

}  // namespace

TEMPLATE_LIST_TEST_CASE("a small float is its bits", "", SmallFloats) {
  STATIC_REQUIRE(std::is_trivially_copyable_v<TestType>);
  STATIC_REQUIRE(sizeof(TestType) == sizeof(TestType::bits));
  STATIC_REQUIRE_FALSE(std::is_convertible_v<TestType, float>);
  STATIC_REQUIRE_FALSE(std::is_convertible_v<float, TestType>);
}

TEMPLATE_LIST_TEST_CASE("every code is worth what its format says", "", SmallFloats) {
  const Oracle<TestType> oracle;
  for (std::uint32_t code = 0; code < codes<TestType>; ++code) {
    const auto value = static_cast<float>(from_code<TestType>(code));
    const double expected = oracle.decode(code);
    const bool is_right = std::isnan(expected) ? std::isnan(value)
                                               : double{value} == expected &&
                                                     std::signbit(value) == std::signbit(expected);
    if (!is_right) FAIL(fmt::format("{:#x} became {} instead of {}", code, value, expected));
  }
}

TEMPLATE_LIST_TEST_CASE("every code survives the way to float and back", "", SmallFloats) {
  const Oracle<TestType> oracle;
  for (std::uint32_t code = 0; code < codes<TestType>; ++code) {
    const std::uint32_t back = TestType(static_cast<float>(from_code<TestType>(code))).bits;
    const std::uint32_t expected = std::isnan(oracle.decode(code)) ? format_of<TestType>.nan : code;
    if (back != expected) FAIL(fmt::format("{:#x} came back as {:#x}", code, back));
  }
}

TEMPLATE_LIST_TEST_CASE("values and the middles between them are rounded to even", "",
                        SmallFloats) {
  const Oracle<TestType> oracle;
  std::vector<double> values = oracle.values();
  for (std::size_t i = 0; i + 1 < oracle.values().size(); ++i) {
    values.push_back((oracle.values()[i] + oracle.values()[i + 1]) / 2);
  }
  std::erase_if(values, [](double value) { return value > std::numeric_limits<float>::max(); });
  REQUIRE(first_wrong(oracle, with_neighbours(values)) == "");
}

TEMPLATE_LIST_TEST_CASE("denormal floats, infinities and NaN are converted", "", SmallFloats) {
  std::vector<float> floats;
  for (const std::uint32_t magnitude :
       {0x0u, 0x1u, 0x2u, 0x7fffu, 0x8000u, 0x8001u, 0x18000u, 0x400000u, 0x7fffffu,  // denormal
        0x800000u, 0x7f7fffffu, 0x7f800000u,                    // the normal ends, infinity
        0x7f800001u, 0x7fbfffffu, 0x7fc00000u, 0x7fffffffu}) {  // signalling and quiet NaN
    floats.push_back(std::bit_cast<float>(magnitude));
    floats.push_back(std::bit_cast<float>(magnitude | 0x80000000));
  }
  REQUIRE(first_wrong(Oracle<TestType>(), floats) == "");
}

TEMPLATE_LIST_TEST_CASE("a million random floats are converted", "", SmallFloats) {
  std::mt19937 random(20240229);  // the seed is fixed
  std::vector<float> floats(1'000'000);
  for (float& value : floats) value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
  REQUIRE(first_wrong(Oracle<TestType>(), floats) == "");
}

TEST_CASE("well-known values have their well-known codes") {  // so that the oracle is tested too
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    float value;
    int f16, bf16, e4m3, e5m2;
  };
  constexpr Row rows[] = {
      {0.0f, 0x0000, 0x0000, 0x00, 0x00},     {-0.0f, 0x8000, 0x8000, 0x80, 0x80},
      {1.0f, 0x3c00, 0x3f80, 0x38, 0x3c},     {-2.0f, 0xc000, 0xc000, 0xc0, 0xc0},
      {448.0f, 0x5f00, 0x43e0, 0x7e, 0x5f},   {464.0f, 0x5f40, 0x43e8, 0x7e, 0x5f},
      {465.0f, 0x5f44, 0x43e8, 0x7f, 0x5f},   {57344.0f, 0x7b00, 0x4760, 0x7f, 0x7b},
      {61439.0f, 0x7b80, 0x4770, 0x7f, 0x7b}, {61440.0f, 0x7b80, 0x4770, 0x7f, 0x7c},
      {65504.0f, 0x7bff, 0x4780, 0x7f, 0x7c}, {65520.0f, 0x7c00, 0x4780, 0x7f, 0x7c},
      {0x1p-24f, 0x0001, 0x3380, 0x00, 0x00}, {0x1p-25f, 0x0000, 0x3300, 0x00, 0x00},
      {0x1p-16f, 0x0100, 0x3780, 0x00, 0x01}, {0x1p-9f, 0x1800, 0x3b00, 0x01, 0x18},
      {infinity, 0x7c00, 0x7f80, 0x7f, 0x7c}, {-infinity, 0xfc00, 0xff80, 0x7f, 0xfc},
      {nan, 0x7e00, 0x7fc0, 0x7f, 0x7e},      {-nan, 0x7e00, 0x7fc0, 0x7f, 0x7e},
  };
  for (const Row& row : rows) {
    CAPTURE(row.value);
    CHECK(int{hocket::float16(row.value).bits} == row.f16);
    CHECK(int{hocket::bfloat16(row.value).bits} == row.bf16);
    CHECK(int{hocket::float8_e4m3(row.value).bits} == row.e4m3);
    CHECK(int{hocket::float8_e5m2(row.value).bits} == row.e5m2);
  }
}
