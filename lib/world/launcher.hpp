// Who started this process, and what that says of its place in the world: read from the environment
// alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/environment.hpp"
#include "net/endpoint.hpp"

namespace hocket::world {

/// What the launcher says of this process; -1 and empty for what it did not say.
struct Launch {
  std::string_view launcher = {};  // "hocket run", "torchrun or env", "Open MPI", …
  int rank = -1;
  int size = -1;
  int local_rank = -1;
  int local_size = -1;
  /// The store: served by rank 0, or by the launcher.
  std::optional<net::Endpoint> master = {};
  bool master_is_served = false;
  std::string job = {};
  int attempt = 0;
  /// Tells this launch from all others on this host, where the launcher names no master.
  std::string family = {};

  [[nodiscard]] bool is_on_one_host() const noexcept { return size >= 1 && local_size == size; }
};

struct Detection {
  Launch launch;
  /// One sentence for each launcher that says otherwise and was not believed.
  std::vector<std::string> disagreements;
};

/// The first of these that started us: hocket run, torchrun or env:// (RANK and WORLD_SIZE), Open
/// MPI, MPICH or Intel MPI, Slurm, a Kubernetes indexed job. MASTER_ADDR and MASTER_PORT name the
/// master for each of them but the first; HOCKET_JOB and HOCKET_ATTEMPT are believed above all.
/// Fails with not_found when there is none, and invalid_argument when what it says makes no sense.
[[nodiscard]] Result<Detection> detect_launcher(const Environment& environment);

/// Only what env:// reads: RANK, WORLD_SIZE and the like.
[[nodiscard]] Result<Launch> read_env(const Environment& environment);

/// The first host of a list as Slurm writes it: "node01" of "node[01-03,7],login".
[[nodiscard]] std::string first_host(std::string_view list);

}  // namespace hocket::world
