// `hocket run`: starts a program as the ranks of a job, on this host or on several.
#pragma once

#include "command.hpp"

namespace hocket::cli {

[[nodiscard]] Command run_command(CLI::App& program);

}  // namespace hocket::cli
