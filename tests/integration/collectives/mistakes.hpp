// Arguments that a rank alone can tell to be wrong.
#pragma once

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"

namespace hocket::testing {

/// Each is refused with words that name it, and the communicator goes on.
void try_mistakes(Communicator& world, Report& report);

}  // namespace hocket::testing
