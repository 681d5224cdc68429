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
  Tag::Past past = {};         // those that have begun
  Mailbox* mailbox = nullptr;  // if its ranks send each other messages
  Status failure = {};

  /// A failure of the group as the transport has it: its peer is a rank of the world.
  [[nodiscard]] Status in_world(const Status& why) const noexcept;
  /// A failure of the transport, in an exchange with that rank of the group: its peer is a rank of
  /// the group, that one where it is no other.
  [[nodiscard]] Status in_group(Status why, std::uint32_t rank, std::uint32_t peer) const noexcept;
};

}  // namespace hocket::engine
