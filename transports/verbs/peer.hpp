// What there is with another rank: queue pairs, one for each rail, and what waits to go over them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "hocket/status.hpp"

#include "transports/tcp/queue.hpp"
#include "transports/verbs/channel.hpp"
#include "transports/verbs/queue_pair.hpp"
#include "transports/verbs/wire.hpp"

namespace hocket::verbs {

/// A piece of a large message that the other end has asked for.
struct Job {
  Channel* channel = nullptr;
  Header grant = {};
};

struct Peer {
  explicit Peer(std::uint32_t number) : rank(number) {}

  const std::uint32_t rank;
  std::vector<std::unique_ptr<QueuePair>> pairs = {};  // the first carries all but pieces
  bool is_linked = false;                              // both ends can receive
  Status failure = {};                                 // of every channel, for good
  bool is_doomed = false;                              // about to fail

  std::map<std::uint64_t, Channel*> lanes = {};
  tcp::Ring<Header> controls = {};
  tcp::Ring<Job> jobs = {};
  tcp::Ring<Channel*> ready = {};
  bool is_busy = false;         // in the list of those for whom something waits
  std::uint32_t granted = 0;    // pieces that we asked for, and that have not come
  std::uint32_t next_rail = 0;  // for the next piece

  [[nodiscard]] bool is_lost() const noexcept { return !failure.ok(); }
  [[nodiscard]] bool has_work() const noexcept {
    return !controls.empty() || !jobs.empty() || !ready.empty();
  }
};

}  // namespace hocket::verbs
