// Which machine this is.
#pragma once

#include <string>
#include <string_view>

namespace hocket {

/// The same for all processes of a machine until it starts anew, also in containers; empty where
/// the system does not tell.
[[nodiscard]] std::string own_machine();

/// What stands behind these words in a small file of the system: the rest of the first line that
/// begins with them; empty where there is none.
[[nodiscard]] std::string system_line(const char* path, std::string_view begin);

}  // namespace hocket
