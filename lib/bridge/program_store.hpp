// A program's store, behind the library's internal interface.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "hocket/status.hpp"
#include "hocket/store.hpp"

#include "base/clock.hpp"
#include "store/store.hpp"

namespace hocket::bridge {

/// Exceptions of the program's functions become the Status of the call. The timeout is passed on to
/// the function, which must keep it; nothing here interrupts it.
class ProgramStore final : public store::Store {
 public:
  explicit ProgramStore(std::shared_ptr<hocket::Store> store);

  [[nodiscard]] Result<std::unique_ptr<store::Store>> clone() override;
  [[nodiscard]] std::string describe() const override { return name_; }
  [[nodiscard]] store::Reply perform(store::Request request) override;

 private:
  const std::shared_ptr<hocket::Store> store_;
  const std::string name_;
};

/// Returns an internal store for any public one: for a store of Hocket a new handle with a
/// connection of its own, for a program's store a wrapper that shares it. `timeout` is for the
/// connection and for later calls; without it the store's own.
[[nodiscard]] Result<std::unique_ptr<store::Store>> handle_of(std::shared_ptr<hocket::Store> store,
                                                              std::optional<Duration> timeout = {});

}  // namespace hocket::bridge
