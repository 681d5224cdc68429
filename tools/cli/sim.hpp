// `hocket sim`: how long a collective operation takes on a network that need not be here.
#pragma once

#include "command.hpp"

namespace hocket::cli {

[[nodiscard]] Command sim_command(CLI::App& program);

}  // namespace hocket::cli
