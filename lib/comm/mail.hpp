// Messages from one rank of a communicator to another.
#pragma once

#include <string>

#include "hocket/message.hpp"
#include "hocket/status.hpp"

#include "comm/group_core.hpp"
#include "comm/path.hpp"
#include "engine/mailbox.hpp"

namespace hocket::comm {

/// For people: "recv from 0 with tag 3".
[[nodiscard]] std::string describe(const engine::Parcel& parcel);

[[nodiscard]] inline bool is_send(const Message& message) noexcept {
  return message.kind == MessageKind::send;
}
[[nodiscard]] Received received_of(const Message& message,
                                   const engine::Received& received) noexcept;

/// Fails with what is wrong with it; says nothing of other ranks.
[[nodiscard]] Status check(const Message& message, const Position& position);

class Mail final : public Path {
 public:
  /// Borrows the core.
  explicit Mail(GroupCore& core) noexcept : Path(core.engine()), core_(core) {}

  [[nodiscard]] Result<Received> run(const Message& message);
  [[nodiscard]] Status start(const Message& message, Operation& operation);

  [[nodiscard]] Status explain(const Operation& operation,
                               const Status& why) const noexcept override {
    return explain(*operation.message, why);
  }
  void let_go(Operation& operation) noexcept override { operation.message.reset(); }

 private:
  /// Checks the message, opens its channels and describes it for the engine. The caller holds the
  /// core's lock, and adds the work and the place of the result.
  [[nodiscard]] Result<engine::Parcel> parcel_of(const Message& message);
  [[nodiscard]] Result<engine::Parcel> make_parcel(const Message& message);
  [[nodiscard]] Status explain(const Message& message, const Status& why) const noexcept;

  GroupCore& core_;
};

}  // namespace hocket::comm
