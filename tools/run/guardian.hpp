// The process that the user started. It lets a child, the worker, do everything, and outlives it:
// so nothing that the worker started is left behind, however the worker ended. The worker in turn
// ends everything when the guardian dies.
#pragma once

#include <functional>
#include <utility>

#include "base/fd.hpp"
#include "run/signals.hpp"

namespace hocket::run {

/// Forks the worker and returns in both processes the status to exit with: in the worker what
/// `work` returned, in the guardian the same (128 + the signal's number when a signal ended the
/// worker), with no descendant of the worker left.
///
/// `work` is given its lifeline: a pipe on which each of the user's signals comes as a byte, and
/// which comes to its end when the guardian has died. Signals that are sent to the worker itself
/// mean nothing: who sends one to every process of a job means one.
[[nodiscard]] int guarded(const std::function<int(Fd lifeline, const Dispositions& before)>& work);

}  // namespace hocket::run
