#include "reduce/kernel.hpp"

#include <vector>

#include "reduce/families.hpp"
#include "reduce/simd.hpp"

namespace hocket::reduce {
namespace {

std::string_view name_of(long long target) noexcept {
  switch (target) {
    case HWY_AVX3:
      return "avx512";
    case HWY_AVX2:
      return "avx2";
    case HWY_SSE4:
      return "sse4";
    case HWY_NEON:
      return "neon";
    default:
      return "none";
  }
}

}  // namespace

std::span<const InstructionSet> instruction_sets() {
  static const std::vector<InstructionSet> sets = [] {
    std::vector<InstructionSet> found;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      found.push_back({.name = name_of(target), .target = target});
    }
    return found;
  }();
  return sets;
}

CombineKernel find_combine(DataType type, ReduceOp op, const InstructionSet& set) {
  for (const auto find : {find_integer_combine, find_float_combine, find_small_float_combine}) {
    if (const CombineKernel kernel = find(type, op, set.target)) return kernel;
  }
  return nullptr;
}

ScaleKernel find_scale(DataType type, Scaling scaling, const InstructionSet& set) {
  if (const ScaleKernel kernel = find_integer_scale(type, scaling)) return kernel;
  for (const auto find : {find_float_scale, find_small_float_scale}) {
    if (const ScaleKernel kernel = find(type, scaling, set.target)) return kernel;
  }
  return nullptr;
}

}  // namespace hocket::reduce
