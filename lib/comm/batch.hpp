// Several operations as one: they are started in a row, and the whole is over when all of them are.
#pragma once

#include <span>

#include "hocket/communicator.hpp"
#include "hocket/status.hpp"

#include "comm/path.hpp"

namespace hocket::comm {

class Batch final : public Path {
 public:
  /// Borrows the group that it is a member of.
  explicit Batch(Group& group) noexcept;

  /// Fails, and has begun nothing, if an argument is wrong. If one of them fails to begin (the
  /// communicator has failed, or memory runs out), those before it go on, and the whole fails when
  /// they are over. Throws std::bad_alloc if memory runs out before one has begun.
  [[nodiscard]] Status start(std::span<const AnyOperation> operations,
                             const OperationOptions& options, Operation& whole);

  [[nodiscard]] Status explain(const Operation& whole, const Status& why) const noexcept override;
  void let_go(Operation& whole) noexcept override;

 private:
  [[nodiscard]] Status check(const AnyOperation& operation);
  [[nodiscard]] Status start_part(const AnyOperation& operation, Operation& part);

  Group& group_;
};

}  // namespace hocket::comm
