// Communicators made from others, and operations under way in every way that they may be.
#pragma once

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"

namespace hocket::testing {

void try_splits(Communicator& world, Report& report);
void try_works(Communicator& world, Report& report);
void try_prepared(Communicator& world, Report& report);

}  // namespace hocket::testing
