// The environment of a process as a value, so that who reads it can be given another.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/setting.hpp"

namespace hocket {

/// Borrows its entries: null-terminated, "NAME=value".
class Environment {
 public:
  explicit Environment(const char* const* entries) noexcept : entries_(entries) {}

  /// Of a name that is set twice the last value; empty when it is not set.
  [[nodiscard]] std::string_view get(std::string_view name) const noexcept;

  /// Set, and not to nothing.
  [[nodiscard]] bool has(std::string_view name) const noexcept { return !get(name).empty(); }

  [[nodiscard]] const char* const* entries() const noexcept { return entries_; }

 private:
  const char* const* entries_;
};

/// An environment with some variables changed. Borrows the entries of `base`, which must outlive
/// it; copies the settings.
class ChangedEnvironment {
 public:
  ChangedEnvironment(const Environment& base, std::span<const Setting> settings);
  ChangedEnvironment(const ChangedEnvironment&) = delete;
  ChangedEnvironment& operator=(const ChangedEnvironment&) = delete;

  [[nodiscard]] Environment get() const noexcept { return Environment(entries_.data()); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> entries_;
};

/// This process's own, as it is while nobody changes it.
[[nodiscard]] Environment process_environment() noexcept;

}  // namespace hocket
