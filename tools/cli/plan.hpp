// `hocket plan`: lists the algorithms, draws their plans, proves them, and says which is chosen.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_plan_command(program::Parser& program);

}  // namespace hocket::cli
