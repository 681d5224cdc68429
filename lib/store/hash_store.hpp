// The store of one process, for its threads.
#pragma once

#include <memory>
#include <string>

#include "store/store.hpp"

namespace hocket::store {

class HashStore final : public Store {
 public:
  HashStore();
  ~HashStore() override;

  /// A clone sees the same keys.
  [[nodiscard]] Result<std::unique_ptr<Store>> clone() override;
  [[nodiscard]] std::string describe() const override { return "the store of this process"; }
  [[nodiscard]] Reply perform(Request request) override;

 private:
  class Contents;
  explicit HashStore(std::shared_ptr<Contents> contents) noexcept;

  std::shared_ptr<Contents> contents_;
};

}  // namespace hocket::store
