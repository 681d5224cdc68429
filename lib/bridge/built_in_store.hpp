// A store that comes with Hocket, behind the public interface.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/store.hpp"

#include "base/fd.hpp"
#include "store/store.hpp"

namespace hocket::bridge {

class BuiltInStore final : public hocket::Store {
 public:
  explicit BuiltInStore(std::unique_ptr<store::Store> store);

  /// Another handle of it. `timeout` is for its connection and for later calls.
  [[nodiscard]] Result<std::unique_ptr<store::Store>> clone(Duration timeout) const;

  void set(std::string_view key, std::string_view value, TimeLimit timeout) override;
  [[nodiscard]] std::string get(std::string_view key, TimeLimit timeout) override;
  void wait(std::span<const std::string> keys, TimeLimit timeout) override;
  [[nodiscard]] bool check(std::span<const std::string> keys, TimeLimit timeout) override;
  std::int64_t add(std::string_view key, std::int64_t amount, TimeLimit timeout) override;
  Swap compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   TimeLimit timeout) override;
  bool delete_key(std::string_view key, TimeLimit timeout) override;
  void append(std::string_view key, std::string_view more, TimeLimit timeout) override;
  void multi_set(std::span<const std::string> keys, std::span<const std::string> values,
                 TimeLimit timeout) override;
  [[nodiscard]] std::vector<std::string> multi_get(std::span<const std::string> keys,
                                                   TimeLimit timeout) override;
  void barrier(std::string_view name, std::int64_t size, TimeLimit timeout) override;
  [[nodiscard]] std::int64_t num_keys(TimeLimit timeout) override;
  [[nodiscard]] std::vector<std::string> keys(std::string_view prefix, TimeLimit timeout) override;
  void queue_push(std::string_view key, std::string_view value, TimeLimit timeout) override;
  [[nodiscard]] std::string queue_pop(std::string_view key, TimeLimit timeout) override;
  [[nodiscard]] std::int64_t queue_length(std::string_view key, TimeLimit timeout) override;
  [[nodiscard]] std::string describe() const override { return store_->describe(); }

 private:
  [[nodiscard]] Duration limit(TimeLimit timeout) const noexcept;
  template <class Call>
  auto perform(const Call& call) const;

  const Origin origin_;
  const std::unique_ptr<store::Store> store_;
};

}  // namespace hocket::bridge
