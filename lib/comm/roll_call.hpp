// A barrier over the store, where each rank writes down that it has come: so those that don't come
// in time are known by name, and their absence harms no operation.
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
  std::string keys = {};  // what its keys begin with; none of them is there before or afterwards
  Place place = {};
  Duration timeout = {};
  /// Of ranks that are missing, for people.
  std::function<std::string(std::span<const int>)> list;
  /// Why waiting is of no use any more, if it is not.
  std::function<Status()> loss;
};

/// Waits until all ranks have called it. If some don't come within the timeout of whoever's ends
/// first, it fails on all ranks with the same words; also on those that come later. A loss, and a
/// store that does not answer, are failures of this rank alone.
[[nodiscard]] Status call_roll(const RollCall& call);

}  // namespace hocket::comm
