#include "integration/collectives/values.hpp"

#include <cstring>
#include <limits>
#include <vector>

namespace hocket::testing {
namespace {

template <class T>
void put(Bytes& to, std::size_t index, T value) {
  std::memcpy(to.data() + index * sizeof(T), &value, sizeof(T));
}

template <class T>
T get(const Bytes& from, std::size_t index) {
  T value;
  std::memcpy(&value, from.data() + index * sizeof(T), sizeof(T));
  return value;
}

/// A part is one number: a complex element has two.
std::size_t part_bytes(DataType type) {
  const bool is_complex = type == DataType::c64 || type == DataType::c128;
  return size_of(type) / (is_complex ? 2 : 1);
}

void put_part(DataType type, Bytes& to, std::size_t index, float value) {
  switch (type) {
    case DataType::f16:
      return put(to, index, float16(value).bits);
    case DataType::bf16:
      return put(to, index, bfloat16(value).bits);
    case DataType::f8e4m3:
      return put(to, index, float8_e4m3(value).bits);
    case DataType::f8e5m2:
      return put(to, index, float8_e5m2(value).bits);
    case DataType::f32:
    case DataType::c64:
      return put(to, index, value);
    default:
      return put(to, index, static_cast<double>(value));
  }
}

/// Sums of so many, of either sign and from up to 8 ranks, are exact: by the digits of the type.
int largest_summand(DataType type) {
  switch (type) {
    case DataType::f8e5m2:
    case DataType::f8e4m3:
      return 1;
    case DataType::bf16:
      return 31;
    case DataType::f16:
      return 120;
    default:
      return 1000;
  }
}

float exact_part(DataType type, ReduceOp op, std::size_t ranks, std::uint64_t bits) {
  if (op == ReduceOp::product) {
    constexpr float factors[] = {1, 2, 0.5F, -1, -2, -0.5F};
    return factors[bits % std::size(factors)];
  }
  // What is divided first must be a multiple.
  const bool scales = op == ReduceOp::average && divides_first(type);
  const int limit = scales ? 1 : largest_summand(type);
  const auto whole = static_cast<int>(bits % static_cast<std::uint64_t>(2 * limit + 1)) - limit;
  return static_cast<float>(scales ? whole * static_cast<int>(ranks) : whole);
}

/// Of a complex product one part is zero, so that every product has one term.
bool is_left_out(DataType type, ReduceOp op, std::size_t index, std::uint64_t bits) {
  const bool is_complex = part_bytes(type) < size_of(type);
  return is_complex && op == ReduceOp::product && (index + bits / 64 % 2) % 2 == 0;
}

Bytes exact_floats(DataType type, ReduceOp op, std::size_t count, std::size_t ranks,
                   std::mt19937_64& random) {
  Bytes bytes(count * size_of(type));
  std::uint64_t bits = 0;
  for (std::size_t i = 0; i < bytes.size() / part_bytes(type); ++i) {
    const bool begins = i * part_bytes(type) % size_of(type) == 0;
    if (begins || op != ReduceOp::product) bits = random() >> 8;
    const bool is_zero = is_left_out(type, op, i, bits);
    put_part(type, bytes, i, is_zero ? 0 : exact_part(type, op, ranks, bits));
  }
  return bytes;
}

}  // namespace

bool is_float(DataType type) { return type >= DataType::f16 && type != DataType::boolean; }

bool divides_first(DataType type) {
  return type == DataType::f16 || type == DataType::f8e4m3 || type == DataType::f8e5m2;
}

Bytes exact_elements(DataType type, ReduceOp op, std::size_t count, std::size_t ranks,
                     std::mt19937_64& random) {
  if (is_float(type)) return exact_floats(type, op, count, ranks, random);
  Bytes bytes(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = random();  // now and then zero, which is false
    const std::uint64_t value = bits % 8 == 0 ? 0 : bits >> 3;
    std::memcpy(bytes.data() + i * size_of(type), &value, size_of(type));
  }
  return bytes;
}

Bytes any_bytes(std::size_t count, std::mt19937_64& random) {
  Bytes bytes((count + 7) / 8 * 8);
  for (std::size_t i = 0; i < bytes.size() / 8; ++i) put(bytes, i, std::uint64_t{random()});
  bytes.resize(count);
  return bytes;
}

Bytes rough_elements(DataType type, std::size_t count, std::mt19937_64& random) {
  Bytes bytes(count * size_of(type));
  std::uniform_real_distribution<float> number(-1, 1);
  for (std::size_t i = 0; i < bytes.size() / part_bytes(type); ++i) {
    put_part(type, bytes, i, number(random));
  }
  return bytes;
}

std::vector<double> parts_of(DataType type, const Bytes& elements) {
  std::vector<double> parts;
  for (std::size_t i = 0; i < elements.size() / part_bytes(type); ++i) {
    if (type == DataType::bf16) {
      bfloat16 value;
      value.bits = get<std::uint16_t>(elements, i);
      parts.push_back(static_cast<double>(static_cast<float>(value)));
    } else {
      const bool is_single = part_bytes(type) == sizeof(float);
      parts.push_back(is_single ? static_cast<double>(get<float>(elements, i))
                                : get<double>(elements, i));
    }
  }
  return parts;
}

double epsilon_of(DataType type) {
  if (type == DataType::bf16) return 1.0 / 128;
  const bool is_single = part_bytes(type) == sizeof(float);
  return is_single ? static_cast<double>(std::numeric_limits<float>::epsilon())
                   : std::numeric_limits<double>::epsilon();
}

}  // namespace hocket::testing
