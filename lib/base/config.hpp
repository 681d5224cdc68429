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
#include "base/log.hpp"

namespace hocket {

enum class ValueKind { text, boolean, integer, size, duration, choice };

[[nodiscard]] std::string_view name(ValueKind kind) noexcept;

/// One of a variable's choices.
struct Choice {
  std::size_t index = 0;
};

/// What a person sees of a variable.
struct VariableInfo {
  std::string_view name;
  ValueKind kind = ValueKind::text;
  std::string_view fallback;  // written as a person would write it
  std::span<const std::string_view> choices = {};
  std::string_view help;
};

template <class T>
inline constexpr ValueKind kind_of = ValueKind::text;
template <>
inline constexpr ValueKind kind_of<bool> = ValueKind::boolean;
template <>
inline constexpr ValueKind kind_of<std::int64_t> = ValueKind::integer;
template <>
inline constexpr ValueKind kind_of<std::uint64_t> = ValueKind::size;
template <>
inline constexpr ValueKind kind_of<Duration> = ValueKind::duration;
template <>
inline constexpr ValueKind kind_of<Choice> = ValueKind::choice;

/// A variable whose value is a T: std::string or one of the types above. Its kind follows from T.
template <class T>
struct Variable : VariableInfo {
  constexpr explicit Variable(VariableInfo info) : VariableInfo(info) { kind = kind_of<T>; }
};

namespace variables {

inline constexpr Variable<Choice> log_level{{
    .name = "HOCKET_LOG_LEVEL",
    .fallback = "warning",
    .choices = log::level_names,
    .help = "the most detailed log lines that are written",
}};

inline constexpr std::string_view simd_levels[] = {"best", "avx512", "avx2",
                                                   "sse4", "neon",   "none"};
inline constexpr Variable<Choice> simd{{
    .name = "HOCKET_SIMD",
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
  /// An empty value counts as unset, and so does one that is not valid, about which a complaint is
  /// kept, as about a name that is unknown.
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
