#include "hocket/types.hpp"

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "support/catch.hpp"

using hocket::data_type_of;
using hocket::DataType;
using hocket::Element;
using hocket::name;
using hocket::ReduceOp;

namespace {

struct TypeRow {
  DataType type;
  int number;  // the C ABI's: never changes
  std::string_view name;
  std::size_t bytes;
};
constexpr TypeRow type_rows[] = {
    {DataType::i8, 0, "i8", 1},          {DataType::u8, 1, "u8", 1},
    {DataType::i16, 2, "i16", 2},        {DataType::u16, 3, "u16", 2},
    {DataType::i32, 4, "i32", 4},        {DataType::u32, 5, "u32", 4},
    {DataType::i64, 6, "i64", 8},        {DataType::u64, 7, "u64", 8},
    {DataType::f16, 8, "f16", 2},        {DataType::bf16, 9, "bf16", 2},
    {DataType::f8e4m3, 10, "f8e4m3", 1}, {DataType::f8e5m2, 11, "f8e5m2", 1},
    {DataType::f32, 12, "f32", 4},       {DataType::f64, 13, "f64", 8},
    {DataType::boolean, 14, "bool", 1},  {DataType::c64, 15, "c64", 8},
    {DataType::c128, 16, "c128", 16},
};

struct OpRow {
  ReduceOp op;
  int number;
  std::string_view name;
};
constexpr OpRow op_rows[] = {
    {ReduceOp::sum, 0, "sum"},
    {ReduceOp::product, 1, "product"},
    {ReduceOp::min, 2, "min"},
    {ReduceOp::max, 3, "max"},
    {ReduceOp::average, 4, "average"},
    {ReduceOp::premul_sum, 5, "premul_sum"},
    {ReduceOp::bit_and, 6, "bit_and"},
    {ReduceOp::bit_or, 7, "bit_or"},
    {ReduceOp::bit_xor, 8, "bit_xor"},
    {ReduceOp::logical_and, 9, "logical_and"},
    {ReduceOp::logical_or, 10, "logical_or"},
    {ReduceOp::custom, 11, "custom"},
};

/// A C++ type maps to a DataType of its own size.
template <class T>
constexpr bool maps_to(DataType type) {
  return data_type_of<T> == type;
}
static_assert(maps_to<signed char>(DataType::i8) && maps_to<unsigned char>(DataType::u8));
static_assert(maps_to<char>(std::is_signed_v<char> ? DataType::i8 : DataType::u8));
static_assert(maps_to<short>(DataType::i16) && maps_to<unsigned short>(DataType::u16));
static_assert(maps_to<int>(DataType::i32) && maps_to<unsigned>(DataType::u32));
static_assert(maps_to<long>(sizeof(long) == 8 ? DataType::i64 : DataType::i32));
static_assert(maps_to<unsigned long>(sizeof(long) == 8 ? DataType::u64 : DataType::u32));
static_assert(maps_to<long long>(DataType::i64) && maps_to<unsigned long long>(DataType::u64));
static_assert(maps_to<std::size_t>(sizeof(std::size_t) == 8 ? DataType::u64 : DataType::u32));
static_assert(maps_to<char16_t>(DataType::u16) && maps_to<char32_t>(DataType::u32));
static_assert(maps_to<bool>(DataType::boolean));
static_assert(maps_to<float>(DataType::f32) && maps_to<double>(DataType::f64));
static_assert(maps_to<std::complex<float>>(DataType::c64));
static_assert(maps_to<std::complex<double>>(DataType::c128));
static_assert(maps_to<hocket::float16>(DataType::f16));
static_assert(maps_to<hocket::bfloat16>(DataType::bf16));
static_assert(maps_to<hocket::float8_e4m3>(DataType::f8e4m3));
static_assert(maps_to<hocket::float8_e5m2>(DataType::f8e5m2));

static_assert(!Element<long double> && !Element<std::byte> && !Element<void*> && !Element<TypeRow>);

}  // namespace

TEST_CASE("elements of any number of bytes") {
  CHECK(hocket::size_of(hocket::bytes_type(1)) == 1);
  CHECK(hocket::size_of(hocket::bytes_type(12)) == 12);
  CHECK(hocket::size_of(hocket::bytes_type(HOCKET_BYTES_MAX)) == HOCKET_BYTES_MAX);
  CHECK(hocket::name(hocket::bytes_type(12)) == "bytes");
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{HOCKET_BYTES_MAX + 1}, SIZE_MAX}) {
    CHECK(hocket::size_of(hocket::bytes_type(bytes)) == 0);
    CHECK(hocket::name(hocket::bytes_type(bytes)) == "unknown");
  }
}

TEMPLATE_TEST_CASE("a type has the size of its DataType", "", signed char, unsigned char, short,
                   unsigned short, int, unsigned, long, unsigned long, long long,
                   unsigned long long, hocket::float16, hocket::bfloat16, hocket::float8_e4m3,
                   hocket::float8_e5m2, float, double, bool, std::complex<float>,
                   std::complex<double>) {
  REQUIRE(hocket::size_of(data_type_of<TestType>) == sizeof(TestType));
}

TEST_CASE("data types keep their numbers, names and sizes") {
  REQUIRE(hocket::all_data_types().size() == std::size(type_rows));
  for (std::size_t i = 0; i < std::size(type_rows); ++i) {
    const TypeRow& row = type_rows[i];
    CAPTURE(row.name);
    REQUIRE(hocket::all_data_types()[i] == row.type);
    REQUIRE(static_cast<int>(row.type) == row.number);
    REQUIRE(name(row.type) == row.name);
    REQUIRE(hocket::size_of(row.type) == row.bytes);
    REQUIRE(hocket::parse_data_type(row.name) == row.type);
  }
}

TEST_CASE("reduction operations keep their numbers and names") {
  REQUIRE(hocket::all_reduce_ops().size() == std::size(op_rows));
  for (std::size_t i = 0; i < std::size(op_rows); ++i) {
    const OpRow& row = op_rows[i];
    CAPTURE(row.name);
    REQUIRE(hocket::all_reduce_ops()[i] == row.op);
    REQUIRE(static_cast<int>(row.op) == row.number);
    REQUIRE(name(row.op) == row.name);
    REQUIRE(hocket::parse_reduce_op(row.name) == row.op);
  }
}

TEST_CASE("values out of range are unknown") {
  for (const int value : {-1, 17, 1'000'000, INT32_MIN, INT32_MAX}) {
    REQUIRE(name(static_cast<DataType>(value)) == "unknown");
    REQUIRE(hocket::size_of(static_cast<DataType>(value)) == 0);
  }
  for (const int value : {-1, 12, 1'000'000, INT32_MIN, INT32_MAX}) {
    REQUIRE(name(static_cast<ReduceOp>(value)) == "unknown");
  }
}

TEST_CASE("other names of data types are understood") {
  constexpr std::pair<std::string_view, DataType> aliases[] = {
      {"int8", DataType::i8},       {"uint8", DataType::u8},
      {"int16", DataType::i16},     {"uint16", DataType::u16},
      {"int32", DataType::i32},     {"uint32", DataType::u32},
      {"int64", DataType::i64},     {"uint64", DataType::u64},
      {"half", DataType::f16},      {"float16", DataType::f16},
      {"bfloat16", DataType::bf16}, {"float8_e4m3", DataType::f8e4m3},
      {"float", DataType::f32},     {"float8_e5m2", DataType::f8e5m2},
      {"float32", DataType::f32},   {"double", DataType::f64},
      {"float64", DataType::f64},   {"boolean", DataType::boolean},
      {"complex64", DataType::c64}, {"complex128", DataType::c128},
  };
  for (const auto& [alias, type] : aliases) {
    CAPTURE(alias);
    REQUIRE(hocket::parse_data_type(alias) == type);
  }
  for (const std::string_view text : {"", "f", "f3", "f322", " f32", "f32 ", "unknown", "string"}) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_data_type(text).has_value());
  }
}

TEST_CASE("other names of operations are understood") {
  constexpr std::pair<std::string_view, ReduceOp> aliases[] = {
      {"prod", ReduceOp::product},   {"avg", ReduceOp::average},
      {"mean", ReduceOp::average},   {"mulsum", ReduceOp::premul_sum},
      {"band", ReduceOp::bit_and},   {"bor", ReduceOp::bit_or},
      {"bxor", ReduceOp::bit_xor},   {"land", ReduceOp::logical_and},
      {"lor", ReduceOp::logical_or},
  };
  for (const auto& [alias, op] : aliases) {
    CAPTURE(alias);
    REQUIRE(hocket::parse_reduce_op(alias) == op);
  }
  for (const std::string_view text : {"", "su", "sums", " sum", "unknown", "lxor"}) {
    CAPTURE(text);
    REQUIRE_FALSE(hocket::parse_reduce_op(text).has_value());
  }
}
