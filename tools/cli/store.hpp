// `hocket store`: serves a store, and looks into one.
#pragma once

#include "command.hpp"

namespace hocket::cli {

[[nodiscard]] Command store_command(CLI::App& program);

}  // namespace hocket::cli
