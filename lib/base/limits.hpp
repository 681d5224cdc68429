// Every limit of the library in one place. A limit is checked where it is used, and what goes past
// it is an error or is cut with a mark: never silently accepted.
#pragma once

#include <cstddef>

namespace hocket::limits {

/// A log line; what is longer is cut and ends in "…".
inline constexpr std::size_t log_line_bytes_max = 4096;

/// What the C ABI keeps of the last error of a thread; what is longer is cut and ends in "…".
inline constexpr std::size_t last_error_bytes_max = 4096;

/// The value of a HOCKET_* variable.
inline constexpr std::size_t variable_bytes_max = 4096;

}  // namespace hocket::limits
