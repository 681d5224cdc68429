// Which of several worlds a process joins: each join of a process with one store is another world.
// They are counted by every rank for itself, and so all ranks join in the same order; worlds with
// names are counted apart from others.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

#include "store/store.hpp"

namespace hocket::world {

/// A world among those that meet in one store.
struct WorldId {
  int attempt = 0;
  std::string name = {};
  int number = 0;  // among those of that name, from 0
  /// Where the ranks may be started again with the same store: the run's name (runs.hpp).
  std::string run = {};
};

/// Of a world or a communicator: letters, digits, ".", "_" and "-"; not too many. `what`: which.
[[nodiscard]] Status check_name(std::string_view name, std::string_view what);

/// By which its keys are apart from other worlds': "0", "0.1", "0.1-loader", "0.1-loader@5a1b".
[[nodiscard]] std::string scope_of(const WorldId& id);
/// What both ends of a connection must agree on.
[[nodiscard]] std::uint64_t epoch_of(const WorldId& id) noexcept;
/// For messages: " of world 2", " of world "loader"", or nothing for the first without a name.
[[nodiscard]] std::string describe(const WorldId& id);

/// What the ranks use until all have come: how many there are, who has come, the outcome.
[[nodiscard]] std::string entry_key(const WorldId& id, std::string_view name);
/// By which a rank shows that it came.
[[nodiscard]] std::string rank_key(const WorldId& id, int rank);

/// Returns the number of this rank's next world of that name in this store: 0 at first, then one
/// more each time. Any thread may call it.
[[nodiscard]] Result<int> next_number(store::Store& store, const WorldId& id, int rank);

}  // namespace hocket::world
