// The environment of a process as a value, so that who reads it can be given another.
#pragma once

#include <string_view>

namespace hocket {

/// Borrows its entries: null-terminated, "NAME=value".
class Environment {
 public:
  explicit Environment(const char* const* entries) noexcept : entries_(entries) {}

  /// Of a name that is set twice the last value; empty when it is not set.
  [[nodiscard]] std::string_view get(std::string_view name) const noexcept;

  /// Set, and not to nothing.
  [[nodiscard]] bool has(std::string_view name) const noexcept { return !get(name).empty(); }

 private:
  const char* const* entries_;
};

/// This process's own, as it is while nobody changes it.
[[nodiscard]] Environment process_environment() noexcept;

}  // namespace hocket
