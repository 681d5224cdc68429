// Messages from one rank of a communicator to another.
#pragma once

#include <string>

#include "hocket/message.hpp"
#include "hocket/status.hpp"

#include "comm/bond.hpp"
#include "comm/path.hpp"
#include "engine/mailbox.hpp"

namespace hocket::comm {

/// For people: "recv from 0 with tag 3".
[[nodiscard]] std::string describe(const engine::Parcel& parcel);

[[nodiscard]] Received received_of(const Message& message,
                                   const engine::Received& received) noexcept;

class Mail final : public Path {
 public:
  /// Borrows the bond.
  explicit Mail(Bond& bond) noexcept : Path(bond.engine()), bond_(bond) {}

  [[nodiscard]] Result<Received> run(const Message& message);
  [[nodiscard]] Status start(const Message& message, Operation& operation);

  [[nodiscard]] Status explain(const Operation& operation,
                               const Status& why) const noexcept override {
    return explain(*operation.message, why);
  }
  void let_go(Operation& operation) noexcept override { operation.message.reset(); }

 private:
  /// All that the engine needs but the work and where to say what was received. Fails when it can't
  /// be.
  [[nodiscard]] Result<engine::Parcel> parcel_of(const Message& message);
  [[nodiscard]] Result<engine::Parcel> parcel(const Message& message);
  [[nodiscard]] Status explain(const Message& message, const Status& why) const noexcept;

  Bond& bond_;
};

}  // namespace hocket::comm
