// A reduction as an engine runs it: prepare each contribution, combine them two at a time, finish.
#pragma once

#include <cstddef>

#include "hocket/status.hpp"
#include "hocket/types.hpp"

#include "reduce/kernel.hpp"

namespace hocket::reduce {

/// The caller's own op: out[i] = a[i] op b[i], associative; out may be a or b. It may throw.
struct CustomOp {
  void (*function)(void* context, void* out, const void* a, const void* b, std::size_t count,
                   DataType type) = nullptr;
  void* context = nullptr;
};

struct ReductionSpec {
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  int contributions = 1;  // how many are combined in all; average divides by it
  double factor = 1.0;    // premul_sum's; a whole number for integers
  CustomOp custom = {};
};

/// Cheap to copy; holds no memory of its own. Any thread.
class Reduction {
 public:
  /// Unsupported when the op is not defined for the type, invalid_argument for a wrong spec.
  [[nodiscard]] static Result<Reduction> make(const ReductionSpec& spec,
                                              const InstructionSet& set = instruction_sets()[0]);

  /// out[i] = a[i] op b[i]. Any alignment and count; out may be a or b, no other overlap. Throws an
  /// Error of code aborted, with the text of the exception, when a custom op throws.
  void combine(void* out, const void* a, const void* b, std::size_t count) const {
    if (combine_ != nullptr) return combine_(out, a, b, count);
    call_custom(out, a, b, count);
  }

  /// Whether contributions need prepare() before, and the last result finish() after.
  [[nodiscard]] bool prepares() const noexcept { return prepare_ != nullptr; }
  [[nodiscard]] bool finishes() const noexcept { return finish_ != nullptr; }

  /// out may be in. Only when prepares(), respectively finishes().
  void prepare(void* out, const void* in, std::size_t count) const {
    prepare_(out, in, count, factor_);
  }
  void finish(void* out, const void* in, std::size_t count) const {
    finish_(out, in, count, factor_);
  }

 private:
  Reduction() = default;

  void call_custom(void* out, const void* a, const void* b, std::size_t count) const;

  DataType type_ = DataType::f32;
  CombineKernel combine_ = nullptr;  // null for a custom op
  ScaleKernel prepare_ = nullptr;
  ScaleKernel finish_ = nullptr;
  double factor_ = 1.0;
  CustomOp custom_;
};

}  // namespace hocket::reduce
