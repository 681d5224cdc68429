// What needs no world.
#pragma once

#include "reduce/kernel.hpp"

namespace hocket::comm {

/// The vector instructions that reductions may use here, as HOCKET_SIMD allows.
[[nodiscard]] const reduce::InstructionSet& allowed_instruction_set();

}  // namespace hocket::comm
