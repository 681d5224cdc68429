// Elements for reductions whose result does not depend on the order.
#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "hocket/types.hpp"

#include "support/reference.hpp"

namespace hocket::testing {

[[nodiscard]] bool is_float(DataType type);  // complex numbers included
/// Types of which an average divides each contribution, and not the sum.
[[nodiscard]] bool divides_first(DataType type);

/// For `ranks` contributions: floats of which every partial result is exact, integers of any bits.
[[nodiscard]] Bytes exact_elements(DataType type, ReduceOp op, std::size_t count, std::size_t ranks,
                                   std::mt19937_64& random);

[[nodiscard]] Bytes any_bytes(std::size_t count, std::mt19937_64& random);

/// Floats between -1 and 1, of a type that parts_of() knows.
[[nodiscard]] Bytes rough_elements(DataType type, std::size_t count, std::mt19937_64& random);

/// The parts of elements as numbers: of f32, f64, bf16, c64 and c128.
[[nodiscard]] std::vector<double> parts_of(DataType type, const Bytes& elements);

/// How far the numbers of a type are apart at 1.
[[nodiscard]] double epsilon_of(DataType type);

}  // namespace hocket::testing
