// A barrier over the store. Each rank writes there that it has come, so that those which do not
// come in time can be named without harm to any other operation.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "comm/arguments.hpp"
#include "store/store.hpp"

namespace hocket::comm {

struct RollCall {
  store::Store& store;
  std::string keys = {};  // prefix of the barrier's keys, which exist only while it runs
  Place place = {};
  Duration timeout = {};
  /// Lists missing ranks in an error: "rank 2 (pid 71 on node1), rank 5 (pid 80 on node2)".
  std::function<std::string(std::span<const int>)> list;
  /// Why the communicator has failed, so that waiting is useless; ok if it has not.
  std::function<Status()> loss;
};

/// Waits until all ranks have called it. When the first rank's timeout ends and some are missing,
/// it fails with the same words on all ranks, also on those that come later. If the communicator
/// fails or the store does not answer, only this rank fails.
[[nodiscard]] Status call_roll(const RollCall& call);

}  // namespace hocket::comm
