// hocket-bench steps: what the engine itself takes for a step of a plan.
#pragma once

#include "program/parser.hpp"

namespace hocket::bench {

void add_steps_command(program::Parser& program);

}  // namespace hocket::bench
