// What a reduction must give, element by element and bit for bit, worked out the slow way: exact or
// wider arithmetic, and for small floats a search among all their values.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "hocket/types.hpp"

namespace hocket::testing {

using Bytes = std::vector<std::byte>;

/// Whether docs/numerics.md defines the op for two elements of the type.
[[nodiscard]] bool is_defined(DataType type, ReduceOp op);

/// a[i] op b[i], for an op that is defined.
[[nodiscard]] Bytes reference_combine(DataType type, ReduceOp op, const Bytes& a, const Bytes& b);

/// in[i] * factor or in[i] / factor.
[[nodiscard]] Bytes reference_multiply(DataType type, const Bytes& in, double factor);
[[nodiscard]] Bytes reference_divide(DataType type, const Bytes& in, int divisor);

/// Elements of every sort: special values (NaN, infinities, zeros of both signs, subnormal and
/// extreme numbers) against each other, random bits, and numbers near 1.
[[nodiscard]] Bytes interesting_elements(DataType type, std::size_t count, std::mt19937_64& random);

}  // namespace hocket::testing
