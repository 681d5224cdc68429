// Which machine this is.
#pragma once

#include <string>

namespace hocket {

/// The same for all processes of a machine until it starts anew, also in containers; empty where
/// the system does not tell.
[[nodiscard]] std::string own_machine();

}  // namespace hocket
