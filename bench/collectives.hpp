// hocket-bench all_reduce, broadcast, …: with the flags and the table of nccl-tests.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace hocket::bench {

/// `words`: the command line without the program's name.
void add_collective_commands(CLI::App& program, const std::vector<std::string>& words);

}  // namespace hocket::bench
