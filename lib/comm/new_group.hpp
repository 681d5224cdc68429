// How the members of a new communicator meet, without the other ranks of its parent: in the store.
// They compare what they have called, and get a number for it.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "comm/membership.hpp"
#include "store/store.hpp"

namespace hocket::comm {

struct Context;

/// The next id of a communicator, which no other one of the world has.
[[nodiscard]] Result<std::uint64_t> take_id(store::Store& store,
                                            std::optional<Duration> timeout = {});

/// How often this process has called for each communicator: its nth call meets the nth call of the
/// other members. Any thread may call it.
class CallCounter {
 public:
  /// Returns the number of this call: 1 at first.
  [[nodiscard]] std::uint64_t next(const std::string& call);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::uint64_t> counts_;
};

struct NewGroup {
  Context& context;
  const Membership& parent;
  std::span<const std::uint32_t> ranks;  // of the parent, in their new order; this rank among them
  std::string_view name;
  Duration timeout;
};

/// Waits until all members have called it. Returns the number of the new communicator, which is
/// the same on all of them and of no other communicator. Fails if a member does not come in time,
/// has died, or has called with another order of ranks; its peer is a rank of the parent, which the
/// failure does not harm.
[[nodiscard]] Result<std::uint64_t> number_new_group(const NewGroup& group);

}  // namespace hocket::comm
