// Ranks that meet in a store that the program brings. It may outlive them, and hold what they left
// there before they were started again: torchrun's ranks, for instance, meet in the store of its
// agent, however often it starts them.
#pragma once

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "store/store.hpp"
#include "world/entry.hpp"

namespace hocket::world {

/// As enter(), in such a store. Each world that its ranks join there is a *run*, with keys of its
/// own: rank 0 begins it, and the others look for it until the deadline. A process that has come to
/// a run does not come to it again. Sets `who.world.run`; other worlds of the same name need no
/// number.
///
/// A second process of rank 0 begins another run, and those that wait for the first follow it. One
/// of another rank waits for rank 0, and is told at the deadline who came before it.
[[nodiscard]] Result<LocalRank> enter_run(store::Store& store, Entry& who, Deadline deadline);

}  // namespace hocket::world
