// What the operations of one communicator share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hocket/status.hpp"
#include "hocket/transport.hpp"

#include "engine/run.hpp"

namespace hocket::engine {

class Mailbox;

/// What a group has failed of, and what it was doing.
struct Failure {
  const Status& why;         // with ranks of the group; the step, where one is known
  std::uint64_t tag = 0;     // of the operation under way; 0: none
  std::uint64_t number = 0;  // of that operation, if its caller has numbered it
  int awaited = -1;          // for which rank of the group it was waiting
};

class FailureObserver {
 public:
  /// Once. Under the engine's lock: it waits for nothing.
  virtual void on_failure(const Failure& failure) noexcept = 0;

 protected:
  ~FailureObserver() = default;
};

/// They run one after the other, as issued: on one channel all messages of one come before those of
/// the next. When one fails, so do all.
struct Group {
  /// All that it may ever open channels on; without them, close() can't reach peers that dial late.
  struct Lanes {
    std::uint64_t first = 1;
    std::uint64_t last = 0;
  };
  Lanes lanes = {};
  /// Of the world, by rank of the group; empty: the same.
  std::span<const std::uint32_t> members = {};
  std::vector<ChannelId> channels = {};
  bool is_busy = false;
  std::vector<Task> queue = {};  // those behind the one that runs
  std::size_t queue_head = 0;
  Tag::History history = {};   // of the operations that have begun
  Mailbox* mailbox = nullptr;  // if its ranks send each other messages
  Status failure = {};
  FailureObserver* observer = nullptr;
  int accused = -1;  // this rank's own number, once another rank has failed because of it

  // Of Engine::abort().
  Status abort = {};
  Group* next_aborted = nullptr;

  /// `why` with its peer as a rank of the world, for the transport. What this rank was accused of
  /// is passed on as it came.
  [[nodiscard]] Status in_world(const Status& why) const noexcept;
  /// `why`, from the transport, with its peer as a rank of the group: `peer`, with whom the
  /// exchange was, if `why` names this rank, nobody, or a rank outside the group.
  [[nodiscard]] Status in_group(Status why, std::uint32_t rank, std::uint32_t peer) noexcept;
};

}  // namespace hocket::engine
