// The functions that reduce, one for each (type, op, instruction set), and where to find them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "hocket/types.hpp"

namespace hocket::reduce {

/// out[i] = a[i] op b[i]. Any alignment and count; out may be a or b, no other overlap.
using CombineKernel = void (*)(void* out, const void* a, const void* b, std::size_t count);

/// out[i] = in[i] scaled by factor. Any alignment and count; out may be in, no other overlap.
using ScaleKernel = void (*)(void* out, const void* in, std::size_t count, double factor);

/// Whether elements are multiplied or divided by the factor.
enum class Scaling { multiply, divide };

/// A set of vector instructions that this build has kernels for.
struct InstructionSet {
  std::string_view name;
  long long target = 0;  // Highway's bit
};

/// What this machine can run, the widest first; never empty.
[[nodiscard]] std::span<const InstructionSet> instruction_sets();

/// The first of `sets` that is no wider than the limit: one of "best" (no limit), "avx512", "avx2",
/// "sse4", "neon" and "none"; the last of them when all are wider.
[[nodiscard]] const InstructionSet& widest_within(std::string_view limit,
                                                  std::span<const InstructionSet> sets);

/// Null when the op is not defined for two elements of the type.
[[nodiscard]] CombineKernel find_combine(DataType type, ReduceOp op, const InstructionSet& set);

/// Null when the type can't be scaled (bool).
[[nodiscard]] ScaleKernel find_scale(DataType type, Scaling scaling, const InstructionSet& set);

}  // namespace hocket::reduce
