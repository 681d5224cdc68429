// `hocket-bench store`.
#pragma once

#include "program/parser.hpp"

namespace hocket::bench {

/// Adds the sub-command to the program; it runs when it is chosen.
void add_store_command(program::Parser& program);

}  // namespace hocket::bench
