// Many communicators at once: busy in threads, and with operations under way on all of them.
#pragma once

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"

namespace hocket::testing {

/// Each thread has a communicator of its own, of some or all ranks.
void try_threads(Communicator& world, Report& report);

/// Every rank begins the operations of the communicators in an order of its own.
void try_orders(Communicator& world, Report& report);

}  // namespace hocket::testing
