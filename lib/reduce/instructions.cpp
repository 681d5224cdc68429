#include "reduce/instructions.hpp"

#include "base/config.hpp"

namespace hocket::reduce {

const InstructionSet& allowed_instruction_set() {
  static const InstructionSet& set = [&]() -> const InstructionSet& {
    const std::size_t limit = process_config().get(variables::simd).index;
    return widest_within(variables::simd_levels[limit], instruction_sets());
  }();
  return set;
}

}  // namespace hocket::reduce
