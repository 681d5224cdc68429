#include "base/text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

#include <fmt/format.h>

namespace hocket {
namespace {

char to_lower(char letter) noexcept {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// "1.5M" into 1.5 and "M"; nothing without a finite number that is not negative.
std::optional<std::pair<double, std::string_view>> split_unit(std::string_view text) noexcept {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(number) || std::signbit(number)) return std::nullopt;
  return std::pair(number, std::string_view(rest, static_cast<std::size_t>(end - rest)));
}

/// How many letters must be changed, added, removed or swapped with the next to make b of a.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older(b.size() + 1), old(b.size() + 1), row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    older.swap(old);
    old.swap(row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto same = [&](std::size_t x, std::size_t y) {
        return to_lower(a[x]) == to_lower(b[y]);
      };
      row[j + 1] = std::min({old[j] + (same(i, j) ? 0 : 1), row[j] + 1, old[j + 1] + 1});
      const bool is_swapped = i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j);
      if (is_swapped) row[j + 1] = std::min(row[j + 1], older[j - 1] + 1);
    }
  }
  return row.back();
}

constexpr std::string_view size_units = "KMGT";

/// The power of two that a unit of size stands for: 0 of "" and "B", 10 of "K", "KB" and "KiB".
std::optional<int> size_power(std::string_view unit) noexcept {
  if (unit.empty() || equal_ignoring_case(unit, "B")) return 0;
  for (std::size_t i = 0; i < size_units.size(); ++i) {
    if (to_lower(unit[0]) != to_lower(size_units[i])) continue;
    const std::string_view rest = unit.substr(1);
    const bool is_unit =
        rest.empty() || equal_ignoring_case(rest, "B") || equal_ignoring_case(rest, "iB");
    return is_unit ? std::optional(10 * static_cast<int>(i + 1)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return to_lower(x) == to_lower(y); });
}

std::optional<std::int64_t> parse_integer(std::string_view text) noexcept {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end) return std::nullopt;
  return value;
}

std::optional<bool> parse_boolean(std::string_view text) noexcept {
  for (const std::string_view word : {"1", "true", "yes", "on"}) {
    if (equal_ignoring_case(text, word)) return true;
  }
  for (const std::string_view word : {"0", "false", "no", "off"}) {
    if (equal_ignoring_case(text, word)) return false;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_size(std::string_view text) noexcept {
  std::uint64_t whole = 0;  // without a fraction no double is used: it would round the largest ones
  const char* const end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, whole); error == std::errc()) {
    if (const auto power = size_power({rest, static_cast<std::size_t>(end - rest)})) {
      return whole <= UINT64_MAX >> *power ? std::optional(whole << *power) : std::nullopt;
    }
  }
  const auto parts = split_unit(text);
  const auto power = parts ? size_power(parts->second) : std::nullopt;
  if (!power) return std::nullopt;
  const double number = std::ldexp(parts->first, *power);
  if (number >= 0x1p64 || number != std::floor(number)) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

std::optional<Duration> parse_duration(std::string_view text) noexcept {
  static constexpr std::array<std::pair<std::string_view, double>, 7> units = {
      {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"", 1e9}, {"m", 60e9}, {"h", 3600e9}}};
  const auto parts = split_unit(text);
  if (!parts) return std::nullopt;
  for (const auto& [unit, nanoseconds] : units) {
    if (unit != parts->second) continue;
    const double total = std::round(parts->first * nanoseconds);
    if (total >= 0x1p63) return std::nullopt;
    return Duration(static_cast<Duration::rep>(total));
  }
  return std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  std::size_t power = 0;
  while (power < size_units.size() && bytes != 0 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++power;
  }
  std::string text = std::to_string(bytes);
  if (power > 0) text += size_units[power - 1];
  return text;
}

std::string format_duration(Duration duration) {
  constexpr std::int64_t shown_max = 10'000;  // four digits
  std::int64_t shown = std::max<std::int64_t>(duration.count(), 0);
  std::int64_t dropped = 1;
  for (; shown >= shown_max; shown = duration.count() / dropped) dropped *= 10;
  const bool is_rounded_up = duration.count() % dropped >= (dropped + 1) / 2;
  const std::int64_t rounded = (shown + (is_rounded_up ? 1 : 0)) * dropped;
  static constexpr std::array<std::pair<std::string_view, std::int64_t>, 6> units = {
      {{"h", 3'600'000'000'000},
       {"m", 60'000'000'000},
       {"s", 1'000'000'000},
       {"ms", 1'000'000},
       {"us", 1'000},
       {"ns", 1}}};
  for (const auto& [unit, nanoseconds] : units) {
    const std::int64_t thousandths = nanoseconds / 1000;
    const bool is_exact = thousandths == 0 || rounded % thousandths == 0;
    if (rounded < nanoseconds || !is_exact) continue;
    std::string text = std::to_string(rounded / nanoseconds);
    if (const auto rest = rounded % nanoseconds; rest != 0) {
      text += fmt::format(".{:03}", rest / thousandths);
      text.erase(text.find_last_not_of('0') + 1);
    }
    return text.append(unit);
  }
  return "0s";
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r";
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

std::string_view take_until(std::string_view& text, std::string_view marks) noexcept {
  const std::string_view front = text.substr(0, text.find_first_of(marks));
  text.remove_prefix(std::min(front.size() + 1, text.size()));
  return front;
}

std::string quote(std::string_view text, std::size_t bytes_max) {
  std::string quoted = "\"";
  for (const char c : text.substr(0, bytes_max)) {
    const bool is_plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
    if (is_plain) {
      quoted += c;
    } else {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return quoted.append(text.size() > bytes_max ? "…\"" : "\"");
}

std::string cut(std::string_view text, std::size_t bytes_max) {
  constexpr std::string_view mark = "…";
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max - mark.size();
  const auto is_inside_character = [&] { return (text[end] & 0xc0) == 0x80; };
  while (end > 0 && is_inside_character()) --end;
  return std::string(text.substr(0, end)).append(mark);
}

std::string hex(std::span<const std::byte> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += digits[std::to_integer<std::size_t>(byte >> 4)];
    text += digits[std::to_integer<std::size_t>(byte & std::byte{0x0f})];
  }
  return text;
}

std::optional<std::string_view> nearest_name(std::string_view text,
                                             std::span<const std::string_view> candidates) {
  std::optional<std::string_view> nearest;
  std::size_t distance_max = std::max<std::size_t>(text.size() / 3, 1);
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(text, candidate);
    if (distance > distance_max || (nearest && distance == distance_max)) continue;
    nearest = candidate;
    distance_max = distance;
  }
  return nearest;
}

}  // namespace hocket
