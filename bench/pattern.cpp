#include "pattern.hpp"

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

#include "base/rng.hpp"

namespace hocket::bench {
namespace {

// Numbers repeat after so many elements: a prime, so that no two blocks of a buffer are alike.
constexpr std::size_t period = 65'521;

/// A negative number, or not a number, or none, in all types.
constexpr std::byte poison_byte{0xee};

constexpr std::int64_t factors_max = 6;  // that are 2, in a product

std::int64_t limit_of(DataType type) {
  switch (type) {
    case DataType::boolean:
      return 1;
    case DataType::f8e5m2:
      return 7;
    case DataType::f8e4m3:
      return 15;
    case DataType::i8:
    case DataType::u8:
      return 127;
    case DataType::bf16:
      return 255;
    case DataType::f16:
      return 2047;
    case DataType::i16:
    case DataType::u16:
      return 32'767;
    default:
      return (1 << 20) - 1;
  }
}

bool is_complex(DataType type) { return type == DataType::c64 || type == DataType::c128; }

/// Of these, average divides each contribution before it adds them (docs/numerics.md).
bool divides_first(DataType type) {
  return type == DataType::f16 || type == DataType::f8e4m3 || type == DataType::f8e5m2;
}

template <class T>
void store(double value, std::byte* to) {
  T stored;
  if constexpr (std::is_arithmetic_v<T>) {
    stored = static_cast<T>(value);
  } else {
    stored = T(static_cast<float>(value));
  }
  std::memcpy(to, &stored, sizeof stored);
}

using Store = void (*)(double value, std::byte* to);

/// Of complex types, for one part.
Store store_of(DataType type) {
  static constexpr Store stores[] = {
      store<std::int8_t>,  store<std::uint8_t>,  store<std::int16_t>, store<std::uint16_t>,
      store<std::int32_t>, store<std::uint32_t>, store<std::int64_t>, store<std::uint64_t>,
      store<float16>,      store<bfloat16>,      store<float8_e4m3>,  store<float8_e5m2>,
      store<float>,        store<double>,        store<bool>,         store<float>,
      store<double>};
  static_assert(static_cast<std::size_t>(DataType::c128) + 1 == std::size(stores));
  return stores[static_cast<std::size_t>(type)];
}

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  return SeededRandom(a * 0xd1342543de82ef95 + b).next();
}

std::int64_t combine(ReduceOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case ReduceOp::product:
      return a * b;
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    case ReduceOp::bit_and:
    case ReduceOp::logical_and:
      return a & b;
    case ReduceOp::bit_or:
    case ReduceOp::logical_or:
      return a | b;
    case ReduceOp::bit_xor:
      return a ^ b;
    default:
      return a + b;
  }
}

/// The first elements from there on, up to a period, as the function gives their parts.
template <class Value>
std::vector<std::byte> tile(DataType type, std::uint32_t parts, std::size_t first,
                            std::size_t bytes, Value value) {
  const Store store = store_of(type);
  const std::size_t part_bytes = size_of(type) / parts;
  std::vector<std::byte> elements(std::min(bytes, period * size_of(type)));
  std::uint64_t position = (first % period) * parts;
  for (std::size_t at = 0; at < elements.size(); at += part_bytes) {
    store(static_cast<double>(value(position)), elements.data() + at);
    if (++position == period * parts) position = 0;
  }
  return elements;
}

std::size_t count_different(std::span<const std::byte> got, std::span<const std::byte> wanted,
                            std::size_t element_bytes) {
  std::size_t wrong = 0;
  while (!got.empty()) {
    const std::size_t bytes = std::min(got.size(), wanted.size());
    if (std::memcmp(got.data(), wanted.data(), bytes) != 0) {
      for (std::size_t at = 0; at < bytes; at += element_bytes) {
        if (std::memcmp(got.data() + at, wanted.data() + at, element_bytes) != 0) ++wrong;
      }
    }
    got = got.subspan(bytes);
  }
  return wrong;
}

}  // namespace

Pattern::Pattern(const Options& options)
    : options_(options), limit_(limit_of(options.type)), parts_(is_complex(options.type) ? 2 : 1) {}

/// At each position a few ranks give so little that it adds up to the limit at most, and the others
/// give nothing.
std::int64_t Pattern::addend(std::uint32_t rank, std::uint64_t position) const {
  const std::int64_t ranks = options_.ranks;
  const bool is_doubled = options_.op == ReduceOp::premul_sum;
  const bool is_alone = options_.op == ReduceOp::average && divides_first(options_.type);
  const std::int64_t room = is_doubled ? limit_ / 2 : limit_;
  const std::int64_t givers = is_alone ? 1 : std::clamp<std::int64_t>(room, 1, ranks);
  const std::uint64_t turn = rank + mix(options_.salt, position) % options_.ranks;
  if (static_cast<std::int64_t>(turn) % ranks >= givers) return 0;
  const std::uint64_t any = mix(mix(options_.salt, rank), position);
  return static_cast<std::int64_t>(any % static_cast<std::uint64_t>(room / givers + 1));
}

std::int64_t Pattern::value(std::uint32_t rank, std::uint64_t position) const {
  const std::uint64_t any = mix(mix(options_.salt, rank), position);
  const bool is_bool = options_.type == DataType::boolean;
  switch (options_.op) {
    case ReduceOp::product: {
      if (is_bool) return static_cast<std::int64_t>(any & 1);
      if (parts_ == 2 && position % 2 == 1) return 0;  // products of real numbers
      const std::uint64_t turn = rank + mix(options_.salt, position) % options_.ranks;
      const bool may_double = static_cast<std::int64_t>(turn % options_.ranks) < factors_max;
      return may_double ? static_cast<std::int64_t>(1 + (any & 1)) : 1;
    }
    case ReduceOp::logical_and:
    case ReduceOp::logical_or:
      return static_cast<std::int64_t>(any & 1);
    case ReduceOp::min:
    case ReduceOp::max:
    case ReduceOp::bit_and:
    case ReduceOp::bit_or:
    case ReduceOp::bit_xor:
      return static_cast<std::int64_t>(any) & limit_;
    default:
      return addend(rank, position);
  }
}

double Pattern::reduced(std::uint64_t position, std::uint32_t ranks) const {
  std::int64_t all = value(0, position);
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    all = combine(options_.op, all, value(rank, position));
  }
  const auto exact = static_cast<double>(all);
  if (options_.op == ReduceOp::premul_sum) return exact * factor;
  return options_.op == ReduceOp::average ? exact / options_.ranks : exact;
}

void Pattern::write(std::uint32_t rank, std::size_t first, std::span<std::byte> to) const {
  const auto elements = tile(options_.type, parts_, first, to.size(),
                             [&](std::uint64_t position) { return value(rank, position); });
  while (!to.empty()) {
    const std::size_t bytes = std::min(to.size(), elements.size());
    std::memcpy(to.data(), elements.data(), bytes);
    to = to.subspan(bytes);
  }
}

std::size_t Pattern::count_wrong(std::uint32_t rank, std::size_t first,
                                 std::span<const std::byte> got) const {
  const auto wanted = tile(options_.type, parts_, first, got.size(),
                           [&](std::uint64_t position) { return value(rank, position); });
  return count_different(got, wanted, size_of(options_.type));
}

std::size_t Pattern::count_wrong_reduced(std::size_t first, std::span<const std::byte> got,
                                         std::uint32_t ranks) const {
  const auto wanted = tile(options_.type, parts_, first, got.size(),
                           [&](std::uint64_t position) { return reduced(position, ranks); });
  return count_different(got, wanted, size_of(options_.type));
}

void Pattern::write_rough(std::uint32_t rank, std::span<std::byte> to) const {
  const Store store = store_of(options_.type);
  const std::size_t part_bytes = size_of(options_.type) / parts_;
  SeededRandom random(mix(options_.salt, rank));
  for (std::size_t at = 0; at < to.size(); at += part_bytes) {
    store(static_cast<double>(random.below(4096)) / 3000 + 0.1, to.data() + at);
  }
}

void poison(std::span<std::byte> memory) { std::ranges::fill(memory, poison_byte); }

}  // namespace hocket::bench
