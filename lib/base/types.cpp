#include "hocket/types.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace hocket::inline v1 {
namespace {

struct DataTypeRow {
  DataType type;
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array data_types = {
    DataTypeRow{DataType::i8, "i8", 1},         DataTypeRow{DataType::u8, "u8", 1},
    DataTypeRow{DataType::i16, "i16", 2},       DataTypeRow{DataType::u16, "u16", 2},
    DataTypeRow{DataType::i32, "i32", 4},       DataTypeRow{DataType::u32, "u32", 4},
    DataTypeRow{DataType::i64, "i64", 8},       DataTypeRow{DataType::u64, "u64", 8},
    DataTypeRow{DataType::f16, "f16", 2},       DataTypeRow{DataType::bf16, "bf16", 2},
    DataTypeRow{DataType::f8e4m3, "f8e4m3", 1}, DataTypeRow{DataType::f8e5m2, "f8e5m2", 1},
    DataTypeRow{DataType::f32, "f32", 4},       DataTypeRow{DataType::f64, "f64", 8},
    DataTypeRow{DataType::boolean, "bool", 1},  DataTypeRow{DataType::c64, "c64", 8},
    DataTypeRow{DataType::c128, "c128", 16},
};

struct ReduceOpRow {
  ReduceOp op;
  std::string_view name;
};

constexpr std::array reduce_ops = {
    ReduceOpRow{ReduceOp::sum, "sum"},
    ReduceOpRow{ReduceOp::product, "product"},
    ReduceOpRow{ReduceOp::min, "min"},
    ReduceOpRow{ReduceOp::max, "max"},
    ReduceOpRow{ReduceOp::average, "average"},
    ReduceOpRow{ReduceOp::premul_sum, "premul_sum"},
    ReduceOpRow{ReduceOp::bit_and, "bit_and"},
    ReduceOpRow{ReduceOp::bit_or, "bit_or"},
    ReduceOpRow{ReduceOp::bit_xor, "bit_xor"},
    ReduceOpRow{ReduceOp::logical_and, "logical_and"},
    ReduceOpRow{ReduceOp::logical_or, "logical_or"},
    ReduceOpRow{ReduceOp::custom, "custom"},
};

// What NumPy, PyTorch, nccl-tests and MPI call them.
constexpr std::pair<std::string_view, DataType> data_type_aliases[] = {
    {"int8", DataType::i8},
    {"uint8", DataType::u8},
    {"int16", DataType::i16},
    {"uint16", DataType::u16},
    {"int32", DataType::i32},
    {"uint32", DataType::u32},
    {"int64", DataType::i64},
    {"uint64", DataType::u64},
    {"half", DataType::f16},
    {"float16", DataType::f16},
    {"bfloat16", DataType::bf16},
    {"float8_e4m3", DataType::f8e4m3},
    {"float8_e5m2", DataType::f8e5m2},
    {"float", DataType::f32},
    {"float32", DataType::f32},
    {"double", DataType::f64},
    {"float64", DataType::f64},
    {"boolean", DataType::boolean},
    {"complex64", DataType::c64},
    {"complex128", DataType::c128},
};
constexpr std::pair<std::string_view, ReduceOp> reduce_op_aliases[] = {
    {"prod", ReduceOp::product},   {"avg", ReduceOp::average},
    {"mean", ReduceOp::average},   {"mulsum", ReduceOp::premul_sum},
    {"band", ReduceOp::bit_and},   {"bor", ReduceOp::bit_or},
    {"bxor", ReduceOp::bit_xor},   {"land", ReduceOp::logical_and},
    {"lor", ReduceOp::logical_or},
};

constexpr auto data_type_values = [] {
  std::array<DataType, data_types.size()> values{};
  std::ranges::transform(data_types, values.begin(), &DataTypeRow::type);
  return values;
}();
constexpr auto reduce_op_values = [] {
  std::array<ReduceOp, reduce_ops.size()> values{};
  std::ranges::transform(reduce_ops, values.begin(), &ReduceOpRow::op);
  return values;
}();

/// The tables above are indexed by value.
const DataTypeRow* row_of(DataType type) noexcept {
  const auto index = static_cast<std::size_t>(type);
  return index < data_types.size() ? &data_types[index] : nullptr;
}
/// 0 if it is not a bytes_type().
std::size_t bytes_of(DataType type) noexcept {
  const auto number = static_cast<std::int32_t>(type);
  if (number <= HOCKET_BYTES(0) || number > HOCKET_BYTES(HOCKET_BYTES_MAX)) return 0;
  return static_cast<std::size_t>(number - HOCKET_BYTES_BASE);
}

static_assert([] {
  for (std::size_t i = 0; i < data_types.size(); ++i) {
    if (static_cast<std::size_t>(data_types[i].type) != i) return false;
  }
  for (std::size_t i = 0; i < reduce_ops.size(); ++i) {
    if (static_cast<std::size_t>(reduce_ops[i].op) != i) return false;
  }
  return true;
}());

}  // namespace

std::span<const DataType> all_data_types() noexcept { return data_type_values; }
std::span<const ReduceOp> all_reduce_ops() noexcept { return reduce_op_values; }

std::string_view name(DataType type) noexcept {
  if (const DataTypeRow* const row = row_of(type)) return row->name;
  return bytes_of(type) > 0 ? "bytes" : "unknown";
}

std::string_view name(ReduceOp op) noexcept {
  const auto index = static_cast<std::size_t>(op);
  return index < reduce_ops.size() ? reduce_ops[index].name : "unknown";
}

std::size_t size_of(DataType type) noexcept {
  const DataTypeRow* const row = row_of(type);
  return row == nullptr ? bytes_of(type) : row->bytes;
}

std::optional<DataType> parse_data_type(std::string_view text) noexcept {
  for (const DataTypeRow& row : data_types) {
    if (row.name == text) return row.type;
  }
  for (const auto& [alias, type] : data_type_aliases) {
    if (alias == text) return type;
  }
  return std::nullopt;
}

std::optional<ReduceOp> parse_reduce_op(std::string_view text) noexcept {
  for (const ReduceOpRow& row : reduce_ops) {
    if (row.name == text) return row.op;
  }
  for (const auto& [alias, op] : reduce_op_aliases) {
    if (alias == text) return op;
  }
  return std::nullopt;
}

}  // namespace hocket::inline v1
