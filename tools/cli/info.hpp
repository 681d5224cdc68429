// `hocket info`: what this build of Hocket is, and what it finds on this machine.
#pragma once

#include "command.hpp"

namespace hocket::cli {

[[nodiscard]] Command info_command(CLI::App& program);

}  // namespace hocket::cli
