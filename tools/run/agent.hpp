// The launcher's part on a host of several: started there by the head through a remote shell, it
// runs that host's ranks as it is told over stdin (channel.hpp), and ends them when the head is
// gone.
#pragma once

namespace hocket::run {

/// Returns the status to exit with, in two processes (guardian.hpp).
[[nodiscard]] int serve_as_agent();

}  // namespace hocket::run
