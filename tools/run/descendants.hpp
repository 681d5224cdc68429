// The processes that descend from this one, wherever they hid: in sessions and groups of their own,
// or behind a parent that is gone.
#pragma once

#include <vector>

#include <sys/types.h>

#include "base/clock.hpp"

namespace hocket::run {

/// From now on the orphans among this process's descendants become its children, so that none gets
/// lost.
void adopt_orphans() noexcept;

/// Whether /proc shows the processes of this one's namespace. Where it doesn't, no descendants are
/// found.
[[nodiscard]] bool sees_descendants();

/// The children of this process.
[[nodiscard]] std::vector<pid_t> children();

/// Kills (SIGKILL) and reaps every descendant, those born meanwhile too, except `spared` and what
/// descends from them. Gives up after a while: a process that hangs in the kernel can't be killed.
/// Returns those that are left.
std::vector<pid_t> kill_descendants(const Clock& clock, const std::vector<pid_t>& spared = {});

}  // namespace hocket::run
