// `hocket plan explain`: which algorithm an operation gets, and why.
#pragma once

#include "command.hpp"

namespace hocket::cli {

/// A sub-command of `hocket plan`.
[[nodiscard]] Command explain_command(CLI::App& plan);

}  // namespace hocket::cli
