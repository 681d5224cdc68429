// `hocket-bench start`: from the launcher's command to its end, with all ranks in one world.
#pragma once

#include <CLI/CLI.hpp>

namespace hocket::bench {

void add_start_command(CLI::App& program);

}  // namespace hocket::bench
