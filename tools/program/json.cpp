#include "program/json.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <system_error>
#include <type_traits>

#include <fmt/format.h>

namespace hocket::program {
namespace {

bool is_within(unsigned char byte, unsigned least, unsigned most) noexcept {
  return byte >= least && byte <= most;
}

/// The bytes of the UTF-8 character that the text begins with; 0 if it begins with none (Unicode
/// 15, table 3-7).
std::size_t character_bytes(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (at(i) & 0xc0U) == 0x80U; };
  const auto first = static_cast<unsigned char>(at(0));
  const auto second = static_cast<unsigned char>(at(1));
  if (first < 0x80) return 1;
  if (is_within(first, 0xc2, 0xdf)) return follows(1) ? 2 : 0;
  if (is_within(first, 0xe0, 0xef)) {
    const bool is_right =
        is_within(second, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return is_right && follows(2) ? 3 : 0;
  }
  if (is_within(first, 0xf0, 0xf4)) {
    const bool is_right =
        is_within(second, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return is_right && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

void append_utf8(std::string& text, std::uint32_t character) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto put_rest = [&](std::uint32_t shift) { put(0x80U | (character >> shift & 0x3fU)); };
  if (character < 0x80) return put(character);
  if (character < 0x800) {
    put(0xc0U | character >> 6U);
  } else {
    if (character < 0x10000) {
      put(0xe0U | character >> 12U);
    } else {
      put(0xf0U | character >> 18U);
      put_rest(12);
    }
    put_rest(6);
  }
  put_rest(0);
}

/// The shortest text that reads back as the same number: "0.001", "3.0", "1e-05".
std::string to_text(double number) {
  char buffer[32];
  const auto end = std::to_chars(buffer, std::end(buffer), number, std::chars_format::scientific);
  const std::string_view whole(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t mark = whole.find('e');
  const std::string_view sign = whole.substr(0, whole.front() == '-' ? 1 : 0);
  std::string digits(whole.substr(sign.size(), mark - sign.size()));
  std::erase(digits, '.');
  int exponent = 0;
  const bool is_negative = whole[mark + 1] == '-';
  std::from_chars(whole.data() + mark + 2, end.ptr, exponent);
  const int point = (is_negative ? -exponent : exponent) + 1;  // where it stands in the digits
  const auto count = static_cast<int>(digits.size());
  if (point < -3 || point > 15) return std::string(whole);
  const auto zeros = [](int n) { return std::string(static_cast<std::size_t>(n), '0'); };
  if (point <= 0) return fmt::format("{}0.{}{}", sign, zeros(-point), digits);
  if (count <= point) return fmt::format("{}{}{}.0", sign, digits, zeros(point - count));
  digits.insert(static_cast<std::size_t>(point), 1, '.');
  return fmt::format("{}{}", sign, digits);
}

}  // namespace

class JsonWriter {
 public:
  explicit JsonWriter(std::size_t indent) : indent_(indent) {}

  void write(const Json& json) {
    std::visit([this](const auto& value) { put(value); }, json.value_);
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void put(std::monostate) { text_ += "null"; }
  void put(bool value) { text_ += value ? "true" : "false"; }
  void put(std::int64_t value) { text_ += std::to_string(value); }
  void put(std::uint64_t value) { text_ += std::to_string(value); }
  void put(double value) { text_ += std::isfinite(value) ? to_text(value) : "null"; }

  void put(const std::string& value) {
    text_ += '"';
    for (std::string_view rest = value; !rest.empty();) {
      const std::size_t bytes = character_bytes(rest);
      if (bytes == 1) {
        put_ascii(rest.front());
      } else if (bytes == 0) {
        append_utf8(text_, 0xfffd);
      } else {
        text_ += rest.substr(0, bytes);
      }
      rest.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    text_ += '"';
  }

  void put_ascii(char character) {
    constexpr std::string_view special = "\"\\\b\f\n\r\t";
    constexpr std::string_view letters = "\"\\bfnrt";
    if (const std::size_t found = special.find(character); found != special.npos) {
      text_ += '\\';
      text_ += letters[found];
    } else if (is_within(static_cast<unsigned char>(character), 0, 0x1f)) {
      text_ += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
    } else {
      text_ += character;
    }
  }

  void put(const Json::Array& items) {
    put_all('[', items, ']', [this](const Json& item) { write(item); });
  }

  void put(const Json::Object& members) {
    put_all('{', members, '}', [this](const Json::Object::value_type& member) {
      put(member.first);
      text_ += indent_ > 0 ? ": " : ":";
      write(member.second);
    });
  }

  template <class Items, class Put>
  void put_all(char open, const Items& items, char close, Put put_one) {
    text_ += open;
    ++depth_;
    for (const auto& item : items) {
      if (&item != &items.front()) text_ += ',';
      break_line();
      put_one(item);
    }
    --depth_;
    if (!items.empty()) break_line();
    text_ += close;
  }

  void break_line() {
    if (indent_ == 0) return;
    text_ += '\n';
    text_.append(depth_ * indent_, ' ');
  }

  std::size_t indent_;
  std::size_t depth_ = 0;
  std::string text_;
};

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  Json read_all() {
    Json json = read();
    skip_space();
    if (at_ < text_.size()) refuse("something follows the value");
    return json;
  }

 private:
  [[noreturn]] void refuse(std::string_view why) const {
    throw JsonError(fmt::format("not JSON at byte {}: {}", at_, why));
  }

  void skip_space() noexcept {
    at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size());
  }

  /// The next byte, which stays; 0 at the end.
  [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

  bool take(std::string_view word) noexcept {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    skip_space();
    if (!take(word)) refuse(fmt::format("\"{}\" is missing", word));
  }

  Json read() {
    skip_space();
    if (++values_ > Json::values_max) refuse("there are too many values");
    if (depth_ > Json::depth_max) refuse("it is nested too deeply");
    switch (peek()) {
      case '{':
        return read_object();
      case '[':
        return read_array();
      case '"':
        return read_string();
      default:
        break;
    }
    if (take("null")) return {};
    if (take("true")) return true;
    if (take("false")) return false;
    return read_number();
  }

  /// Calls read_one() for each of the items between the brackets.
  template <class ReadOne>
  void read_items(std::string_view open, std::string_view close, ReadOne read_one) {
    expect(open);
    ++depth_;
    skip_space();
    if (!take(close)) {
      do {
        read_one();
        skip_space();
      } while (take(","));
      expect(close);
    }
    --depth_;
  }

  Json read_array() {
    Json json = Json::array();
    auto& items = std::get<Json::Array>(json.value_);
    read_items("[", "]", [&] { items.push_back(read()); });
    return json;
  }

  Json read_object() {
    Json json = Json::object();
    auto& members = std::get<Json::Object>(json.value_);
    read_items("{", "}", [&] {
      skip_space();
      if (peek() != '"') refuse("the name of a member is missing");
      std::string name = read_string();
      expect(":");
      members.emplace_back(std::move(name), read());
    });
    return json;
  }

  std::string read_string() {
    std::string value;
    expect("\"");
    while (!take("\"")) {
      if (at_ == text_.size()) refuse("a text has no end");
      const std::size_t bytes = character_bytes(text_.substr(at_));
      if (bytes == 0) refuse("a text is not UTF-8");
      if (is_within(static_cast<unsigned char>(peek()), 0, 0x1f)) {
        refuse("a text has a control character");
      }
      if (take("\\")) {
        read_escape(value);
      } else {
        value += text_.substr(at_, bytes);
        at_ += bytes;
      }
    }
    return value;
  }

  void read_escape(std::string& value) {
    constexpr std::string_view letters = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (take("u")) return append_utf8(value, read_character());
    const std::size_t found = letters.find(peek());
    if (at_ == text_.size() || found == letters.npos) refuse("an escape is unknown");
    value += meanings[found];
    ++at_;
  }

  /// What \u stands for, with the second half of a surrogate pair.
  std::uint32_t read_character() {
    const std::uint32_t first = read_hex();
    if (first < 0xd800 || first > 0xdfff) return first;
    if (first > 0xdbff || !take("\\u")) refuse("a surrogate stands alone");
    const std::uint32_t second = read_hex();
    if (second < 0xdc00 || second > 0xdfff) refuse("a surrogate stands alone");
    return 0x10000 + ((first - 0xd800) << 10U) + (second - 0xdc00);
  }

  std::uint32_t read_hex() {
    const std::string_view digits = text_.substr(at_, 4);
    std::uint32_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto parsed = std::from_chars(digits.data(), end, value, 16);
    if (digits.size() < 4 || parsed.ptr != end) refuse("\\u needs four hexadecimal digits");
    at_ += 4;
    return value;
  }

  std::size_t skip_digits() noexcept {
    const std::size_t first = at_;
    at_ = std::min(text_.find_first_not_of("0123456789", at_), text_.size());
    return at_ - first;
  }

  Json read_number() {
    const std::size_t first = at_;
    const bool is_negative = take("-");
    const bool has_zero = peek() == '0';
    const std::size_t digits = skip_digits();
    if (digits == 0) refuse("a value is missing");
    if (has_zero && digits > 1) refuse("a number begins with 0");
    bool is_whole = true;
    if (take(".")) {
      is_whole = false;
      if (skip_digits() == 0) refuse("a number ends with its point");
    }
    if (take("e") || take("E")) {
      is_whole = false;
      if (!take("-")) take("+");
      if (skip_digits() == 0) refuse("an exponent has no digits");
    }
    const std::string_view number = text_.substr(first, at_ - first);
    if (is_whole) {
      auto whole = is_negative ? convert<std::int64_t>(number) : convert<std::uint64_t>(number);
      if (!whole.is_null()) return whole;
    }
    Json json = convert<double>(number);
    if (json.is_null()) refuse("a number is out of range");
    return json;
  }

  /// Null if the number is out of range.
  template <class T>
  static Json convert(std::string_view number) {
    T value = 0;
    const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
    return parsed.ec == std::errc() ? Json(value) : Json();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  std::size_t values_ = 0;
};

Json::Json() noexcept = default;
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json::Json(double value) : value_(value) {}
Json::Json(const char* text) : value_(std::string(text)) {}
Json::Json(std::string_view text) : value_(std::string(text)) {}
Json::Json(std::string text) : value_(std::move(text)) {}

Json::Json(std::initializer_list<Json> items) {
  const auto is_member = [](const Json& item) {
    const auto* const pair = std::get_if<Array>(&item.value_);
    return pair != nullptr && pair->size() == 2 &&
           std::holds_alternative<std::string>(pair->front().value_);
  };
  if (!std::ranges::all_of(items, is_member)) {
    value_ = Array(items);
    return;
  }
  auto& members = value_.emplace<Object>();
  members.reserve(items.size());
  for (const Json& item : items) {
    const auto& pair = std::get<Array>(item.value_);
    members.emplace_back(pair.front().get_string(), pair.back());
  }
}

Json Json::array() {
  Json json;
  json.value_.emplace<Array>();
  return json;
}

Json Json::object() {
  Json json;
  json.value_.emplace<Object>();
  return json;
}

Json Json::parse(std::string_view text) { return JsonReader(text).read_all(); }

std::string Json::dump(std::size_t indent) const {
  JsonWriter writer(indent);
  writer.write(*this);
  return writer.take();
}

bool Json::is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }

bool Json::get_bool() const {
  if (const bool* const value = std::get_if<bool>(&value_)) return *value;
  throw JsonError("a JSON value is not a boolean");
}

double Json::get_double() const {
  return std::visit(
      [](const auto& value) -> double {
        using Value = std::remove_cvref_t<decltype(value)>;
        if constexpr (std::is_arithmetic_v<Value> && !std::same_as<Value, bool>) {
          return static_cast<double>(value);
        } else {
          throw JsonError("a JSON value is not a number");
        }
      },
      value_);
}

const std::string& Json::get_string() const {
  if (const auto* const value = std::get_if<std::string>(&value_)) return *value;
  throw JsonError("a JSON value is not a text");
}

std::int64_t Json::get_signed(std::int64_t least, std::int64_t most) const {
  std::optional<std::int64_t> number;
  if (const auto* const value = std::get_if<std::int64_t>(&value_)) number = *value;
  if (const auto* const value = std::get_if<std::uint64_t>(&value_);
      value != nullptr && std::in_range<std::int64_t>(*value)) {
    number = static_cast<std::int64_t>(*value);
  }
  if (number && *number >= least && *number <= most) return *number;
  throw JsonError(fmt::format("a JSON value is not a whole number from {} to {}", least, most));
}

std::uint64_t Json::get_unsigned(std::uint64_t most) const {
  std::optional<std::uint64_t> number;
  if (const auto* const value = std::get_if<std::uint64_t>(&value_)) number = *value;
  if (const auto* const value = std::get_if<std::int64_t>(&value_);
      value != nullptr && *value >= 0) {
    number = static_cast<std::uint64_t>(*value);
  }
  if (number && *number <= most) return *number;
  throw JsonError(fmt::format("a JSON value is not a whole number from 0 to {}", most));
}

const Json::Array& Json::items() const {
  if (const auto* const array = std::get_if<Array>(&value_)) return *array;
  throw JsonError("a JSON value is not an array");
}

void Json::push_back(Json item) {
  if (is_null()) value_.emplace<Array>();
  auto* const array = std::get_if<Array>(&value_);
  if (array == nullptr) throw JsonError("a JSON value is not an array");
  array->push_back(std::move(item));
}

const Json* Json::find(std::string_view name) const noexcept {
  const auto* const members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->rbegin(), members->rend(),
                                  [&](const auto& member) { return member.first == name; });
  return found == members->rend() ? nullptr : &found->second;
}

const Json& Json::at(std::string_view name) const {
  if (const Json* const found = find(name)) return *found;
  throw JsonError(fmt::format("a JSON object has no member \"{}\"", name));
}

Json& Json::operator[](std::string_view name) {
  if (is_null()) value_.emplace<Object>();
  auto* const members = std::get_if<Object>(&value_);
  if (members == nullptr) throw JsonError("a JSON value is not an object");
  const auto found = std::ranges::find(*members, name, &Object::value_type::first);
  if (found != members->end()) return found->second;
  return members->emplace_back(name, Json()).second;
}

}  // namespace hocket::program
