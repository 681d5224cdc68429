// A meeting in the store. Each rank writes there that it has come, so that those which do not come
// in time can be named without harm to any other operation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "store/store.hpp"

namespace hocket::world {

struct RollCall {
  store::Store& store;
  std::string keys = {};  // prefix of the meeting's keys, which exist only while it runs
  std::uint32_t rank = 0;
  std::uint32_t size = 1;
  Duration timeout = {};
  /// Whether the others count on this rank afterwards: then it tells them if it fails by itself. If
  /// not, rank 0, which may serve the store and end right behind the meeting, waits until all have
  /// read the verdict.
  bool is_binding = false;
  /// What this rank says of the meeting, without spaces. All ranks must say the same.
  std::string card = {};
  std::string disagreement = {};  // what two ranks did if their cards differ: "have ..."
  /// Called where all are seen to have come, perhaps on several ranks and more than once. All ranks
  /// get what it returned at one of these times. It may take so long.
  std::function<Result<std::string>(Duration)> grant = [](Duration) {
    return Result<std::string>("");
  };
  /// Lists missing ranks in an error: "rank 2 (pid 71 on node1), rank 5 (pid 80 on node2)".
  std::function<std::string(std::span<const int>)> list;
  /// Why the communicator has failed, so that waiting is useless; ok if it has not.
  std::function<Status()> loss;
};

/// Waits until all ranks have called it, and returns what was granted. When the first rank's
/// timeout ends and some are missing, or when two have not said the same, it fails with the same
/// words on all ranks, also on those that come later. If the communicator fails or the store does
/// not answer, only this rank fails.
[[nodiscard]] Result<std::string> call_roll(const RollCall& call);

}  // namespace hocket::world
