// The loops that a programmer would write, as the compiler vectorises them at -O3: what the kernels
// must not lose to. Compiled twice, for any machine of the family and for this one.
#pragma once

#include <cstddef>

#include "hocket/types.hpp"

namespace hocket::bench {

/// What the loops of average divide by, and those of premul_sum multiply by: 1, which the compiler
/// can't know.
extern int scaling;

using PlainLoop = void (*)(void* out, const void* a, const void* b, std::size_t count);

namespace plain {
/// Null when the op is not defined for the type.
[[nodiscard]] PlainLoop find_loop(DataType type, ReduceOp op);
}  // namespace plain

namespace native {
[[nodiscard]] PlainLoop find_loop(DataType type, ReduceOp op);

/// Reads both operands and writes nothing: no reduction can be faster where memory is the limit.
std::size_t read_both(const void* a, const void* b, std::size_t bytes);
}  // namespace native

}  // namespace hocket::bench
