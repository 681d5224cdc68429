#include "program/option.hpp"

#include <algorithm>
#include <charconv>
#include <concepts>
#include <limits>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::program {
namespace {

std::vector<std::string> split(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) parts.emplace_back(take_until(text, ","));
  return parts;
}

std::optional<double> parse_number(std::string_view text) noexcept {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return {};
  return value;
}

std::string type_of(const Target& target) {
  constexpr const char* types[] = {"BOOLEAN", "INT",      "UINT", "INT",  "UINT",
                                   "FLOAT",   "DURATION", "TEXT", "UINT", "TEXT"};
  static_assert(std::size(types) == std::variant_size_v<Target>);
  return types[target.index()];
}

std::string to_string(const Target& target) {
  return std::visit(
      [](const auto* value) -> std::string {
        using Value = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::same_as<Value, Duration>) {
          return format_duration(*value);
        } else if constexpr (std::same_as<Value, std::optional<std::uint32_t>>) {
          return *value ? std::to_string(**value) : "";
        } else if constexpr (std::same_as<Value, std::vector<std::string>>) {
          return fmt::format("[{}]", joined(*value, ","));
        } else if constexpr (std::same_as<Value, bool>) {
          return *value ? "1" : "0";
        } else {
          return fmt::format("{}", *value);
        }
      },
      target);
}

}  // namespace

UsageError::UsageError(std::string_view option, std::string_view why)
    : UsageError(fmt::format("{}: {}", option, why)) {}

Option::Option(Kind kind, std::string_view names, Target target, std::string_view help)
    : kind_(kind), target_(target), help_(help), type_(type_of(target)) {
  for (std::string& name : split(names)) {
    if (name.starts_with('!')) {
      negation_ = name.substr(1);
    } else {
      names_.push_back(std::move(name));
    }
  }
}

Option& Option::in_range(std::int64_t least, std::int64_t most) {
  least_ = least;
  most_ = most;
  return type(fmt::format("{} in [{} - {}]", type_, least, most));
}

Option& Option::not_negative() {
  least_ = 0;
  return type("UINT");
}

Option& Option::one_of(std::vector<std::string> choices) {
  choices_ = std::move(choices);
  return type(fmt::format("{{{}}}", joined(choices_, ",")));
}

Option& Option::excludes(Option& other) {
  excluded_.push_back(&other);
  other.excluded_.push_back(this);
  return *this;
}

Option& Option::required(bool is_required) {
  is_required_ = is_required;
  return *this;
}

Option& Option::comma_separated() {
  is_comma_separated_ = true;
  return *this;
}

Option& Option::type(std::string name) {
  type_ = std::move(name);
  return *this;
}

Option& Option::with_default() {
  default_ = to_string(target_);
  return *this;
}

Option& Option::hidden() {
  is_hidden_ = true;
  return *this;
}

bool Option::is_list() const noexcept {
  return std::holds_alternative<std::vector<std::string>*>(target_);
}

bool Option::answers_to(std::string_view name) const noexcept {
  return kind_ != Kind::positional &&
         (name == negation_ || std::ranges::find(names_, name) != names_.end());
}

std::int64_t Option::read_integer(std::string_view text, std::int64_t least,
                                  std::int64_t most) const {
  const auto number = parse_integer(text);
  const std::int64_t from = std::max(least, least_.value_or(least));
  const std::int64_t to = std::min(most, most_.value_or(most));
  if (number && *number >= from && *number <= to) return *number;
  throw UsageError(name(), fmt::format("{} is not a whole number from {} to {}", text, from, to));
}

void Option::set(std::string_view text) {
  const auto need = [&](const auto& value, std::string_view kind) {
    if (!value) throw UsageError(name(), fmt::format("{} is not {}", text, kind));
    return *value;
  };
  std::visit(
      [&]<class Value>(Value* value) {
        if constexpr (std::same_as<Value, bool>) {
          *value = need(parse_boolean(text), "a boolean: 1 or 0");
        } else if constexpr (std::integral<Value>) {
          constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
          using Limits = std::numeric_limits<Value>;
          *value = static_cast<Value>(read_integer(
              text, std::int64_t{Limits::min()},
              std::in_range<std::int64_t>(Limits::max()) ? std::int64_t(Limits::max()) : most));
        } else if constexpr (std::same_as<Value, std::optional<std::uint32_t>>) {
          *value = static_cast<std::uint32_t>(
              read_integer(text, 0, std::numeric_limits<std::uint32_t>::max()));
        } else if constexpr (std::same_as<Value, double>) {
          *value = need(parse_number(text), "a number");
        } else if constexpr (std::same_as<Value, Duration>) {
          *value = need(parse_duration(text), "a duration such as 5s or 500ms");
        } else if constexpr (std::same_as<Value, std::string>) {
          *value = text;
        } else {
          value->emplace_back(text);
        }
      },
      target_);
}

void Option::take(std::string_view text) {
  if (is_given_ && !is_list()) throw UsageError(name(), "it is given twice");
  if (auto* const* const list = std::get_if<std::vector<std::string>*>(&target_);
      list != nullptr && !is_given_) {
    (*list)->clear();  // of the default
  }
  is_given_ = true;
  if (!choices_.empty() && std::ranges::find(choices_, text) == choices_.end()) {
    throw UsageError(name(), fmt::format("{} is none of {}", text, joined(choices_, ", ")));
  }
  if (!is_comma_separated_) return set(text);
  for (const std::string& part : split(text)) set(part);
}

void Option::take_flag(std::string_view name, const std::optional<std::string>& value) {
  is_given_ = true;
  set(value ? *value : "1");
  bool& target = *std::get<bool*>(target_);
  if (name == negation_) target = !target;
}

/// "-n,--ranks INT in [1 - 64]=4"
std::string Option::label() const {
  std::string label = joined(names_, ",");
  if (!negation_.empty()) label += "," + negation_;
  if (kind_ != Kind::flag) label += " " + type_;
  if (!default_.empty()) label += "=" + default_;
  if (is_list()) label += " ...";
  if (is_required_) label += " REQUIRED";
  if (!excluded_.empty()) label += " Excludes:";
  for (const Option* other : excluded_) label += " " + other->name();
  return label;
}

}  // namespace hocket::program
