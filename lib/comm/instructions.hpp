// The vector instructions that reductions may use here.
#pragma once

#include "reduce/kernel.hpp"

namespace hocket::comm {

/// As HOCKET_SIMD allows.
[[nodiscard]] const reduce::InstructionSet& allowed_instruction_set();

}  // namespace hocket::comm
