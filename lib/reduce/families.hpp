// Where each family of types has its kernels. Null: the family has no such kernel.
#pragma once

#include "reduce/kernel.hpp"

namespace hocket::reduce {

[[nodiscard]] CombineKernel find_integer_combine(DataType type, ReduceOp op, long long target);
[[nodiscard]] CombineKernel find_float_combine(DataType type, ReduceOp op, long long target);
[[nodiscard]] CombineKernel find_small_float_combine(DataType type, ReduceOp op, long long target);

[[nodiscard]] ScaleKernel find_integer_scale(DataType type, Scaling scaling);
[[nodiscard]] ScaleKernel find_float_scale(DataType type, Scaling scaling, long long target);
[[nodiscard]] ScaleKernel find_small_float_scale(DataType type, Scaling scaling, long long target);

}  // namespace hocket::reduce
