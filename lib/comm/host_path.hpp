// Collectives on memory of the host: each gets a plan, which the engine runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "hocket/collective.hpp"
#include "hocket/status.hpp"

#include "comm/bond.hpp"
#include "comm/path.hpp"
#include "comm/planner.hpp"

namespace hocket::comm {

class HostPath final : public CollectivePath {
 public:
  /// Borrows the bond.
  explicit HostPath(Bond& bond);

  [[nodiscard]] Status run(const Collective& collective, int device = -1) override;
  [[nodiscard]] Status start(const Collective& collective, int device,
                             Operation& operation) override;
  [[nodiscard]] Result<std::unique_ptr<Repeated>> prepare(std::shared_ptr<Group> group,
                                                          const Collective& collective,
                                                          int device) override;
  [[nodiscard]] Status explain(const Operation& operation,
                               const Status& why) const noexcept override {
    return explain(operation.call, why);
  }
  void let_go(Operation& operation) noexcept override { operation.call = {}; }

  // The same in parts, for those that repeat a collective or watch over it themselves.
  /// All but the work and its deadline. Fails, with the operation's name, when this rank alone can
  /// tell that it can't be. Of device memory it must be what the transport was told of.
  [[nodiscard]] Status set_up(const Collective& collective, HostCall& call);
  [[nodiscard]] Status run(const Collective& collective, HostCall& call);
  /// Throws without memory before it has begun.
  void start(const Collective& collective, const HostCall& call, Operation& operation);
  /// Begins it. The caller waits for the work and moves the engine.
  [[nodiscard]] Status begin(const Collective& collective, HostCall& call, engine::Work& work,
                             Deadline deadline);

 private:
  [[nodiscard]] Status plan(const Collective& collective, HostCall& call);
  void number(HostCall& call, engine::Work& work);
  [[nodiscard]] Status explain(const HostCall& call, const Status& why) const noexcept;

  Bond& bond_;
  std::uint64_t operations_ = 0;  // begun
  std::byte token_[2] = {};       // what ranks tell each other at a barrier: nothing
  Planner planner_;
};

}  // namespace hocket::comm
