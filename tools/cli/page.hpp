// What a sub-command writes to stdout for a person.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::cli {

/// Headings and tables, one below the other. Bold on a terminal only, and not with NO_COLOR set.
/// Tables line up when their first column is no wider than `first_width`.
class Page {
 public:
  explicit Page(std::size_t first_width = 0);

  void heading(std::string_view text);

  /// Indented rows of aligned cells; one row may have more of them than another.
  void table(const std::vector<std::vector<std::string>>& rows);

 private:
  bool is_styled_;
  std::size_t first_width_;
  bool is_empty_ = true;
};

/// "12.34 us", "1.50 ms", "3.00 s"
[[nodiscard]] std::string format_time(double seconds);

}  // namespace hocket::cli
