// A part of another store: every key there begins with a prefix that its users do not see.
#pragma once

#include <memory>
#include <string>

#include "store/store.hpp"

namespace hocket::store {

class PrefixStore final : public Store {
 public:
  /// Key k is "prefix/k" in `whole`.
  PrefixStore(std::unique_ptr<Store> whole, std::string_view prefix);

  [[nodiscard]] Result<std::unique_ptr<Store>> clone() override;
  [[nodiscard]] std::string describe() const override { return whole_->describe(); }
  [[nodiscard]] Reply perform(Request request) override;

 private:
  std::unique_ptr<Store> whole_;
  std::string prefix_;  // with its slash
};

}  // namespace hocket::store
