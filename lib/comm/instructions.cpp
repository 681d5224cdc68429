#include "comm/instructions.hpp"

#include "base/config.hpp"

namespace hocket::comm {

const reduce::InstructionSet& allowed_instruction_set() {
  static const reduce::InstructionSet& set = [&]() -> const reduce::InstructionSet& {
    const std::size_t limit = process_config().get(variables::simd).index;
    return reduce::widest_within(variables::simd_levels[limit], reduce::instruction_sets());
  }();
  return set;
}

}  // namespace hocket::comm
