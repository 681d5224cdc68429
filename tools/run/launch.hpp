// From the options of `hocket run` to the end of the job.
#pragma once

#include "run/options.hpp"

namespace hocket::run {

/// Runs the job. Returns the status to exit with, in two processes: that of the user, and the one
/// that did the work (guardian.hpp).
[[nodiscard]] int launch(const Options& options);

}  // namespace hocket::run
