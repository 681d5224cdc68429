// The vector instructions that reductions may use here.
#pragma once

#include "reduce/kernel.hpp"

namespace hocket::reduce {

/// As HOCKET_SIMD allows.
[[nodiscard]] const InstructionSet& allowed_instruction_set();

}  // namespace hocket::reduce
