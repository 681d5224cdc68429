// Measures the reduction kernels beside memcpy, plain loops and what memory allows.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "hocket/types.hpp"

#include "measure.hpp"
#include "reduce/kernel.hpp"

namespace hocket::bench {

/// Where operands of a size live.
struct Level {
  std::string name;
  std::size_t bytes = 0;  // of one operand
};

/// One (type, op) at one level, in seconds a call.
struct KernelTimes {
  DataType type = DataType::f32;
  ReduceOp op = ReduceOp::sum;
  std::size_t level = 0;
  double apart = 0;      // out = a op b
  double in_place = 0;   // a = a op b
  double plain = 0;      // out = a op b, the compiler's loop for any machine of the family
  double native = 0;     // and for this machine
  double read_both = 0;  // reading both operands and nothing else
};

struct KernelSweep {
  std::vector<DataType> types;
  std::vector<ReduceOp> ops;
  std::vector<Level> levels;
  reduce::InstructionSet set;
  MeasureOptions measuring;
};

struct KernelResults {
  std::vector<double> memcpy;        // by level
  std::vector<KernelTimes> kernels;  // by type, op, level
};

/// `progress` is called with a few words before each part.
[[nodiscard]] KernelResults run(const KernelSweep& sweep,
                                const std::function<void(const std::string&)>& progress);

}  // namespace hocket::bench
