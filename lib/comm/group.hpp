// A communicator from inside: who is in it, its channels, and its operations.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "comm/context.hpp"
#include "comm/planner.hpp"

namespace hocket::comm {

/// An operation as it is handed to the engine, and what it borrows.
struct Operation {
  engine::Task task = {};
  std::shared_ptr<const Plan> plan = {};
  std::uint64_t number = 0;  // among those of its communicator
};

/// One thread at a time.
class Group {
 public:
  /// `members`: ranks of the world, by rank of this communicator; `rank` is this process's. No two
  /// communicators that share a process have one id.
  Group(std::shared_ptr<Context> context, std::uint64_t id, std::vector<std::uint32_t> members,
        std::uint32_t rank, Duration timeout);
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group();

  [[nodiscard]] const Place& place() const noexcept { return place_; }
  [[nodiscard]] engine::Engine& engine() const noexcept { return *context_->engine; }

  /// All but the work and its deadline. Fails, with the operation's name, when this rank alone can
  /// tell that it can't be.
  [[nodiscard]] Status set_up(const Collective& collective, Operation& operation);
  /// Counts it, and says when it must be over.
  void number(const Collective& collective, Operation& operation);

  [[nodiscard]] Status run(const Collective& collective);
  [[nodiscard]] Status run(const Collective& collective, Operation& operation);
  /// What a failure of an operation is to the caller.
  [[nodiscard]] Status explain(const Operation& operation, const Status& why) const;

  [[nodiscard]] Result<std::shared_ptr<Group>> split(int color, int key);

 private:
  [[nodiscard]] Result<ChannelId> open(const engine::Port& port);

  const std::shared_ptr<Context> context_;
  const std::uint64_t id_;
  const std::vector<std::uint32_t> members_;
  const Place place_;
  const Duration timeout_;
  std::uint64_t operations_ = 0;  // begun
  engine::Group group_;
  std::byte token_[2] = {};  // what ranks tell each other at a barrier: nothing
  std::unordered_map<std::uint64_t, ChannelId> channels_;  // by peer and lane
  Planner planner_;
};

}  // namespace hocket::comm
