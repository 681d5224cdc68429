// `hocket-bench tune`: which algorithm is fastest here for what, as a tuning file.
#pragma once

#include "program/parser.hpp"

namespace hocket::bench {

void add_tune_command(program::Parser& program);

}  // namespace hocket::bench
