// The log: a line for a person, to stderr or to the sink of the program that embeds Hocket. Whoever
// detects a failure logs it; who passes it on does not.
#pragma once

#include <new>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "hocket/hocket.h"

namespace hocket::log {

enum class Level { error = HOCKET_LOG_ERROR, warning, info, debug };

/// By level.
inline constexpr std::string_view level_names[] = {"error", "warning", "info", "debug"};
[[nodiscard]] std::string_view name(Level level) noexcept;

/// Lines above this level are dropped before they are formatted; warning to begin with. Any thread.
void set_level(Level level) noexcept;
[[nodiscard]] bool enabled(Level level) noexcept;

/// Null goes back to stderr. When it returns, the former sink is not running and won't be called.
void set_sink(hocket_log_sink sink, void* context) noexcept;

/// Hands a finished message to the sink, one at a time, cut at limits::log_line_bytes_max.
void write(Level level, std::string_view message) noexcept;

/// In a child made by fork(): of the lock that a thread of its parent may have held.
void renew_lock() noexcept;

/// Formats and writes when the level is enabled. A line for which there is no memory is lost.
template <class... Args>
void line(Level level, fmt::format_string<Args...> format, Args&&... args) noexcept {
  if (!enabled(level)) return;
  try {
    write(level, fmt::format(format, std::forward<Args>(args)...));
  } catch (...) {
  }
}

}  // namespace hocket::log
