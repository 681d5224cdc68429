// Collectives on memory of the host: each gets a plan, which the engine runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "comm/group_core.hpp"
#include "comm/path.hpp"
#include "comm/planner.hpp"

namespace hocket::comm {

class HostPath final : public CollectivePath {
 public:
  /// Borrows the core.
  explicit HostPath(GroupCore& core);

  [[nodiscard]] Status run(const Collective& collective, int device = -1) override;
  [[nodiscard]] Status start(const Collective& collective, int device,
                             Operation& operation) override;
  [[nodiscard]] Result<std::unique_ptr<PreparedCollective>> prepare(std::shared_ptr<Group> group,
                                                                    const Collective& collective,
                                                                    int device) override;
  [[nodiscard]] Status explain(const Operation& operation,
                               const Status& why) const noexcept override {
    return explain(operation.call, why);
  }
  void let_go(Operation& operation) noexcept override { operation.call = {}; }

  /// Fills `call`, except for the work and the deadline, so that the two functions below can run
  /// the collective any number of times. Fails if an argument is wrong or there is no plan. Device
  /// memory must have been registered with the transport.
  [[nodiscard]] Status prepare(const Collective& collective, HostCall& call);
  [[nodiscard]] Status run(const Collective& collective, HostCall& call);
  /// Throws std::bad_alloc if memory runs out; then nothing has begun.
  void start(const Collective& collective, const HostCall& call, Operation& operation);
  /// Starts the collective. The caller waits for the work and moves the engine.
  [[nodiscard]] Status begin(const Collective& collective, HostCall& call, engine::Work& work,
                             Deadline deadline);

 private:
  // With the core's lock.
  [[nodiscard]] Status set_up(const Collective& collective, HostCall& call);
  [[nodiscard]] Status plan(const Collective& collective, HostCall& call);
  void number(HostCall& call, engine::Work& work) noexcept;
  void begin(const Collective& collective, HostCall& call, engine::Work& work);
  void begin_in_background(const Collective& collective, const HostCall& call,
                           Operation& operation);

  [[nodiscard]] Status finish(const Collective& collective, HostCall& call, engine::Work& work);
  [[nodiscard]] Status explain(const HostCall& call, const Status& why) const noexcept;

  GroupCore& core_;
  std::uint64_t begun_ = 0;  // how many operations have begun
  std::uint32_t bank_ = 0;   // of the next one
  std::byte token_[2] = {};  // input and output of all barriers, which carry no data
  Planner planner_;
};

}  // namespace hocket::comm
