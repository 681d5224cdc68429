// `hocket plan`: lists the algorithms, draws their plans, proves them, and says which is chosen.
#pragma once

#include "command.hpp"

namespace hocket::cli {

[[nodiscard]] Command plan_command(CLI::App& program);

}  // namespace hocket::cli
