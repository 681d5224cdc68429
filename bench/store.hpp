// `hocket-bench store`.
#pragma once

#include <CLI/CLI.hpp>

namespace hocket::bench {

/// Adds the sub-command to the program; it runs when it is chosen.
void add_store_command(CLI::App& program);

}  // namespace hocket::bench
