// Files that a sub-command writes where the user says.
#pragma once

#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::cli {

[[nodiscard]] Status write_file(const std::string& path, std::string_view text);

}  // namespace hocket::cli
