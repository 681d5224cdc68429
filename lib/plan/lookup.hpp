// Operations and algorithms by the words that people type.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "plan/catalog.hpp"

namespace hocket::plan {

/// Fails with the nearest name there is.
[[nodiscard]] Result<Operation> look_up_operation(std::string_view word);

/// Those of that name, of one operation or of all; without a name, all. At least one, or it fails
/// with the nearest name there is.
[[nodiscard]] Result<std::vector<const Algorithm*>> look_up_algorithms(
    std::optional<Operation> operation, std::string_view name);

}  // namespace hocket::plan
