// Ranks that are started again with the same store. It holds what they left there before;
// torchrun's does, for instance, whose ranks meet in the store of its agent.
#pragma once

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "store/store.hpp"
#include "world/entry.hpp"

namespace hocket::world {

/// As enter(), in a store that may outlive its ranks. Each time that all of them are started is
/// another *run*: rank 0 begins it, and the others look for it until the deadline. Sets
/// `who.world.run`.
///
/// A second process of rank 0 begins another run, and those that wait for the first follow it. One
/// of another rank waits for rank 0, and is told at the deadline who came before it.
[[nodiscard]] Result<LocalRank> enter_run(store::Store& store, Entry& who, Deadline deadline);

}  // namespace hocket::world
