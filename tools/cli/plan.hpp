// `hocket plan`: lists the algorithms, draws their plans and proves them.
#pragma once

#include "command.hpp"

namespace hocket::cli {

[[nodiscard]] Command plan_command(CLI::App& program);

}  // namespace hocket::cli
