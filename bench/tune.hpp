// `hocket-bench tune`: which algorithm is fastest here for what, as a tuning file.
#pragma once

#include <CLI/CLI.hpp>

namespace hocket::bench {

void add_tune_command(CLI::App& program);

}  // namespace hocket::bench
