// hocket-bench overlap: how much of an operation is hidden behind what its rank computes meanwhile.
#pragma once

#include <string>
#include <vector>

#include "program/parser.hpp"

namespace hocket::bench {

/// `words`: the command line without the program's name.
void add_overlap_command(program::Parser& program, const std::vector<std::string>& words);

}  // namespace hocket::bench
