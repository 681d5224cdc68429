// Numbers, sizes and durations as people write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/clock.hpp"

namespace hocket {

[[nodiscard]] bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

/// "-12"; nothing for anything else, surrounding space and overflow included.
[[nodiscard]] std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

/// 1 0 true false yes no on off, in any case.
[[nodiscard]] std::optional<bool> parse_boolean(std::string_view text) noexcept;

/// Bytes: "4096", "64K", "1.5M", "2GiB". Units are powers of 1024, K M G T, with or without "B" or
/// "iB".
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;

/// "250ms", "2s", "1.5m", "1h", "10us", "5ns"; a bare number is seconds. Never negative.
[[nodiscard]] std::optional<Duration> parse_duration(std::string_view text) noexcept;

/// The shortest of the forms above with nothing rounded: "64K", "1000".
[[nodiscard]] std::string format_size(std::uint64_t bytes);

/// For people: rounded to four digits, in the largest unit that needs no more than three decimals:
/// "2s", "1.5s", "250ms". Zero or less is "0s".
[[nodiscard]] std::string format_duration(Duration duration);

/// Without the spaces, tabs and carriage returns around it.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

/// Cuts off the front up to the first of the marks, which is dropped; without one, all of it.
std::string_view take_until(std::string_view& text, std::string_view marks) noexcept;

/// The text in quotes, with \\xNN for what is not printable ASCII; at most about bytes_max of it.
[[nodiscard]] std::string quote(std::string_view text, std::size_t bytes_max = 64);

/// At most bytes_max of the text: what is longer is cut between two characters and ends in "…".
[[nodiscard]] std::string cut(std::string_view text, std::size_t bytes_max);

/// The parts, which are texts or whole numbers, with the mark between them: "a, b, c". (fmt::join
/// compiles much of fmt once more into each program that uses it.)
template <class Parts>
[[nodiscard]] std::string joined(const Parts& parts, std::string_view mark) {
  std::string text;
  bool first = true;
  for (const auto& part : parts) {
    if (!std::exchange(first, false)) text += mark;
    if constexpr (std::is_integral_v<std::remove_cvref_t<decltype(part)>>) {
      text += std::to_string(part);
    } else {
      text += part;
    }
  }
  return text;
}

/// Two digits 0-9a-f for each byte.
[[nodiscard]] std::string hex(std::span<const std::byte> bytes);

/// The candidate that text was most likely meant to be; nothing when none is near.
[[nodiscard]] std::optional<std::string_view> nearest_name(
    std::string_view text, std::span<const std::string_view> candidates);

}  // namespace hocket
