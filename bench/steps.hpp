// hocket-bench steps: what the engine itself takes for a step of a plan.
#pragma once

#include <CLI/CLI.hpp>

namespace hocket::bench {

void add_steps_command(CLI::App& program);

}  // namespace hocket::bench
