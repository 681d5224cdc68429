// A process finds its world: its number, the others, and the store that they share.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/config.hpp"
#include "base/environment.hpp"
#include "store/store.hpp"
#include "wire/credentials.hpp"
#include "world/number.hpp"
#include "world/served.hpp"

namespace hocket::world {

struct World {
  /// Where this rank serves the store: it must outlive the other ranks' use of theirs.
  ServerLease server = {};
  /// Keys of this world alone.
  std::unique_ptr<store::Store> store = {};
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // among the ranks of this host
  int local_size = 1;
  WorldId id = {};
  std::string job = {};
  std::string address = {};            // of this rank, for links to others
  std::string_view launcher = {};      // who said so: "Open MPI", "the URL", …
  wire::Credentials credentials = {};  // what all ranks share
};

struct RendezvousOptions {
  /// A store of the program to meet in. Null: the URL or the launcher says where.
  std::unique_ptr<store::Store> store = {};
  /// -1: the URL or the launcher says it.
  int rank = -1;
  int size = -1;
  /// How to meet (rendezvous_url.hpp); empty for HOCKET_RENDEZVOUS, else the launcher is asked.
  std::string url = {};
  /// Of the world: those of different names don't meet. Those of one name are numbered by each rank
  /// in the order in which it joins them.
  std::string name = {};
  /// Each overrides the environment and the URL where it is not empty.
  wire::Credentials credentials = {};
  /// For all ranks to be there, and of later requests to the store; else the URL's, else
  /// HOCKET_STORE_TIMEOUT.
  std::optional<Duration> timeout = {};
};

/// Returns when all ranks are there; otherwise fails within the timeout and names the ranks that
/// are missing or wrong. `environment` is where launchers are recognised, `config` has the HOCKET_*
/// variables.
[[nodiscard]] Result<World> rendezvous(RendezvousOptions options, const Environment& environment,
                                       const Config& config);

/// Behind what all ranks, just joined, still fetch by the store, once: who serves it waits for the
/// others, so that it can't end and take the store from them; but no longer than `patience`.
void let_all_in(const World& world, Duration patience);

}  // namespace hocket::world
