#include "reduce/reduction.hpp"

#include <cmath>
#include <exception>
#include <limits>
#include <string_view>

#include <fmt/format.h>

namespace hocket::reduce {
namespace {

bool is_integer(DataType type) noexcept { return type <= DataType::u64; }

/// Where a sum soon leaves the type's range, contributions to an average are divided beforehand; in
/// the others the sum is, which rounds once and keeps the average of equal values exact.
bool averages_beforehand(DataType type) noexcept {
  return type == DataType::f16 || type == DataType::f8e4m3 || type == DataType::f8e5m2;
}

Status unsupported(const ReductionSpec& spec) {
  return Status(StatusCode::unsupported,
                fmt::format("{} is not defined for {}", name(spec.op), name(spec.type)))
      .with_hint("docs/numerics.md lists the ops of every type");
}

Status check(const ReductionSpec& spec) {
  if (size_of(spec.type) == 0 || name(spec.op) == "unknown") {
    return {StatusCode::invalid_argument,
            fmt::format("no such data type or op: {}, {}", static_cast<int>(spec.type),
                        static_cast<int>(spec.op))};
  }
  if (spec.contributions < 1) {
    return {StatusCode::invalid_argument,
            fmt::format("a reduction of {} contributions", spec.contributions)};
  }
  const bool is_double = spec.type == DataType::f64 || spec.type == DataType::c128;
  const double factor_max =
      is_double ? std::numeric_limits<double>::max() : double{std::numeric_limits<float>::max()};
  if (spec.op == ReduceOp::premul_sum && !(std::abs(spec.factor) <= factor_max)) {
    return {StatusCode::invalid_argument,
            fmt::format("premul_sum of {} by {}", name(spec.type), spec.factor)};
  }
  const bool is_whole =
      std::nearbyint(spec.factor) == spec.factor && std::abs(spec.factor) <= 0x1p53;
  if (spec.op == ReduceOp::premul_sum && is_integer(spec.type) && !is_whole) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("premul_sum of {} by {}", name(spec.type), spec.factor))
        .with_hint("the factor of an integer type must be a whole number of at most 2^53");
  }
  if (spec.op == ReduceOp::custom && spec.custom.function == nullptr) {
    return {StatusCode::invalid_argument, "a custom op without a function"};
  }
  return {};
}

[[noreturn]] void refuse_exception(std::string_view text) {
  throw_error(Status(StatusCode::aborted, fmt::format("the custom op threw {}", text))
                  .with_hint("the communicator can't be used any more: an op must not throw"));
}

}  // namespace

void Reduction::call_custom(void* out, const void* a, const void* b, std::size_t count) const {
  try {
    custom_.function(custom_.context, out, a, b, count, type_);
  } catch (const std::exception& exception) {
    refuse_exception(fmt::format("an exception: {}", exception.what()));
  } catch (...) {
    refuse_exception("an exception of an unknown type");
  }
}

Result<Reduction> Reduction::make(const ReductionSpec& spec, const InstructionSet& set) {
  if (Status status = check(spec); !status.ok()) return status;
  Reduction reduction;
  reduction.type_ = spec.type;
  if (spec.op == ReduceOp::custom) {
    reduction.custom_ = spec.custom;
    return reduction;
  }
  const bool is_average = spec.op == ReduceOp::average;
  const bool is_scaled_sum = is_average || spec.op == ReduceOp::premul_sum;
  reduction.combine_ = find_combine(spec.type, is_scaled_sum ? ReduceOp::sum : spec.op, set);
  if (reduction.combine_ == nullptr) return unsupported(spec);
  if (!is_scaled_sum) return reduction;

  reduction.factor_ = is_average ? spec.contributions : spec.factor;
  const ScaleKernel scale =
      find_scale(spec.type, is_average ? Scaling::divide : Scaling::multiply, set);
  if (scale == nullptr) return unsupported(spec);
  const bool beforehand = !is_average || averages_beforehand(spec.type);
  (beforehand ? reduction.prepare_ : reduction.finish_) = scale;
  return reduction;
}

}  // namespace hocket::reduce
