// `hocket-bench kernels`.
#pragma once

#include <CLI/CLI.hpp>

namespace hocket::bench {

/// Adds the sub-command to the program; it runs when it is chosen.
void add_kernels_command(CLI::App& program);

}  // namespace hocket::bench
