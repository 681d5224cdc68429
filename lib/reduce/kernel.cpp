#include "reduce/kernel.hpp"

#include <algorithm>
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
    case HWY_SCALAR:
      return "none";
    default:
      return hwy::TargetName(target);
  }
}

/// How narrow the vectors are; what has no name here is a newer, wider kind.
std::size_t narrowness(std::string_view name) noexcept {
  static constexpr std::string_view by_width[] = {"avx512", "avx2", "sse4", "neon", "none"};
  const auto found = std::ranges::find(by_width, name);
  return found == std::end(by_width) ? 0 : static_cast<std::size_t>(found - by_width) + 1;
}

}  // namespace

std::span<const InstructionSet> instruction_sets() {
  // Never destroyed: the destructors of a program's globals may still reduce.
  static const std::vector<InstructionSet>& sets = *new std::vector([] {
    std::vector<InstructionSet> found;
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
      found.push_back({.name = name_of(target), .target = target});
    }
    return found;
  }());
  return sets;
}

const InstructionSet& widest_within(std::string_view limit, std::span<const InstructionSet> sets) {
  const auto found = std::ranges::find_if(
      sets, [&](const InstructionSet& set) { return narrowness(set.name) >= narrowness(limit); });
  return found == sets.end() ? sets.back() : *found;
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
