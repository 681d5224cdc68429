// How many files this process may have open: sockets count.
#pragma once

#include <cstdint>

#include "hocket/status.hpp"

namespace hocket {

/// Raises the soft limit, if need be, so that there is room for that many files beside a few
/// others. Fails with limit_exceeded when the hard limit forbids it; the soft one is as high as it
/// can be then.
Status allow_open_files(std::uint64_t count);

}  // namespace hocket
