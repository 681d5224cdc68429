// hocket-bench all_reduce, broadcast, …: with the flags and the table of nccl-tests.
#pragma once

#include <string>
#include <vector>

#include "program/parser.hpp"

namespace hocket::bench {

/// `words`: the command line without the program's name.
void add_collective_commands(program::Parser& program, const std::vector<std::string>& words);

}  // namespace hocket::bench
