// Configuration from HOCKET_* environment variables. A variable exists when it stands in
// `variables` below: one place for its name, type, default and help.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"

namespace hocket {

enum class ValueKind { text, boolean, integer, size, duration, choice };

[[nodiscard]] std::string_view name(ValueKind kind) noexcept;

/// What a person sees of a variable.
struct VariableInfo {
  std::string_view name;
  ValueKind kind = ValueKind::text;
  std::string_view fallback;  // written as a person would write it
  std::span<const std::string_view> choices = {};
  std::string_view help;
};

/// A variable whose value is a T: std::string (text), bool, std::int64_t (integer), std::uint64_t
/// (size), Duration, or std::size_t wrapped as Choice (the index of the choice taken).
template <class T>
struct Variable : VariableInfo {};

struct Choice {
  std::size_t index = 0;
};

namespace variables {

inline constexpr std::string_view log_levels[] = {"error", "warning", "info", "debug"};
inline constexpr Variable<Choice> log_level{{
    .name = "HOCKET_LOG_LEVEL",
    .kind = ValueKind::choice,
    .fallback = "warning",
    .choices = log_levels,
    .help = "the most detailed log lines that are written",
}};

inline constexpr std::string_view simd_levels[] = {"best", "avx512", "avx2", "sse4", "none"};
inline constexpr Variable<Choice> simd{{
    .name = "HOCKET_SIMD",
    .kind = ValueKind::choice,
    .fallback = "best",
    .choices = simd_levels,
    .help = "the widest vector instructions that reductions use; results are the same with all",
}};

/// Every variable of Hocket, in the order people read them.
[[nodiscard]] std::span<const VariableInfo* const> all() noexcept;

}  // namespace variables

/// The variables that were set, checked on reading.
class Config {
 public:
  /// Reads the entries of `environment` (null-terminated, "NAME=value") that begin with HOCKET_.
  /// Keeps a complaint for each that is unknown or has no valid value, which then counts as unset.
  explicit Config(const char* const* environment,
                  std::span<const VariableInfo* const> known = variables::all());

  /// The value set, or the variable's default.
  template <class T>
  [[nodiscard]] T get(const Variable<T>& variable) const;

  /// The text that was set; nothing when the default holds.
  [[nodiscard]] std::optional<std::string_view> text_of(const VariableInfo& variable) const;

  /// One sentence each: which variable, what is wrong, what it could be.
  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept { return complaints_; }

 private:
  void read(std::string_view name, std::string_view value);

  std::span<const VariableInfo* const> known_;
  std::map<std::string_view, std::string> values_;  // keys live in the registry
  std::vector<std::string> complaints_;
};

/// This process's environment, read at the first call, which also sets the log's level, echoes
/// every variable that is set (level info) and warns of complaints.
[[nodiscard]] const Config& process_config();

}  // namespace hocket
