#include "page.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <unistd.h>

#include <fmt/format.h>

namespace hocket::cli {

Page::Page(std::size_t first_width)
    : is_styled_(isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr),
      first_width_(first_width) {}

void Page::heading(std::string_view text) {
  fmt::print("{}{}{}{}\n", is_empty_ ? "" : "\n", is_styled_ ? "\x1b[1m" : "", text,
             is_styled_ ? "\x1b[0m" : "");
  is_empty_ = false;
}

void Page::table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths = {first_width_};
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_last = i + 1 == row.size();
      fmt::print("  {:<{}}", row[i], is_last ? 0 : widths[i]);
    }
    fmt::print("\n");
  }
  is_empty_ = false;
}

std::string format_time(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

}  // namespace hocket::cli
