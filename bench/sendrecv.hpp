// hocket-bench sendrecv: messages between pairs of ranks.
#pragma once

#include <string>
#include <vector>

#include "program/parser.hpp"

namespace hocket::bench {

/// `words`: the command line without the program's name.
void add_sendrecv_command(program::Parser& program, const std::vector<std::string>& words);

}  // namespace hocket::bench
