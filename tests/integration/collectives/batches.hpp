// Operations on many vectors at once.
#pragma once

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"

namespace hocket::testing {

/// Blocking, in the background and prepared; of few and many, of empty and of large ones.
void try_batches(Communicator& world, Report& report);
/// Not with the allocators of sanitizers, which end the process.
void try_too_large_batch(Communicator& world, Report& report);

}  // namespace hocket::testing
