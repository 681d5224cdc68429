// Worlds in which the last rank does something else than the others, each in its own way. Every
// rank prints what its operation came to, for the test to judge.
#pragma once

#include <string_view>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"

namespace hocket::testing {

/// Whether there is a trouble of that name.
bool try_trouble(std::string_view name, Communicator& world, Report& report);

}  // namespace hocket::testing
