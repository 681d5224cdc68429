// JSON (RFC 8259): documents that our programs print, and messages that they send and receive.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace hocket::program {

/// A text is not JSON, or a value is not what the caller expects.
class JsonError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One JSON value. The members of an object keep the order in which they were added.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;

  // Limits of parse(), so that a hostile text can exhaust neither the stack nor the memory.
  static constexpr std::size_t depth_max = 64;
  static constexpr std::size_t values_max = 1 << 20;

  Json() noexcept;  // null
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  // Implicit, so that documents read like JSON: {{"name", name}, {"sizes", sizes}, {"ok", true}}.
  template <std::same_as<bool> T>
  Json(T value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(std::int64_t{value}) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(std::uint64_t{value}) {}
  Json(double value);
  Json(const char* text);
  Json(std::string_view text);
  Json(std::string text);
  template <class T>
  Json(std::span<const T> items) : value_(Array(items.begin(), items.end())) {}
  template <class T>
  Json(const std::vector<T>& items) : Json(std::span<const T>(items)) {}
  /// An object if each item is a pair that begins with a text, otherwise an array.
  Json(std::initializer_list<Json> items);

  [[nodiscard]] static Json array();
  [[nodiscard]] static Json object();

  /// Reads a whole text. Of members with the same name, the last one counts. Throws JsonError.
  [[nodiscard]] static Json parse(std::string_view text);

  /// The text: in one line, or with each level indented by so many spaces. Bytes that are not UTF-8
  /// become U+FFFD, and numbers that JSON does not have become null.
  [[nodiscard]] std::string dump(std::size_t indent = 0) const;

  [[nodiscard]] bool is_null() const noexcept;

  /// A bool, a number that T holds exactly (or any number if T is double), or a std::string. Throws
  /// JsonError for any other value.
  template <class T>
  [[nodiscard]] T get() const {
    if constexpr (std::same_as<T, bool>) {
      return get_bool();
    } else if constexpr (std::same_as<T, double>) {
      return get_double();
    } else if constexpr (std::same_as<T, std::string>) {
      return get_string();
    } else if constexpr (std::signed_integral<T>) {
      return static_cast<T>(
          get_signed(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else {
      static_assert(std::unsigned_integral<T>);
      return static_cast<T>(get_unsigned(std::numeric_limits<T>::max()));
    }
  }

  /// The items of an array; throws JsonError for anything else.
  [[nodiscard]] const Array& items() const;
  /// Adds to an array; null becomes an array.
  void push_back(Json item);

  /// The member of that name; null if this is no object or has no such member.
  [[nodiscard]] const Json* find(std::string_view name) const noexcept;
  /// The member of that name; throws JsonError if there is none.
  [[nodiscard]] const Json& at(std::string_view name) const;
  /// Adds the member if there is none of that name; null becomes an object.
  [[nodiscard]] Json& operator[](std::string_view name);
  /// The member's value, or `fallback` if there is no such member.
  template <class T>
  [[nodiscard]] T value(std::string_view name, T fallback) const {
    const Json* const found = find(name);
    return found == nullptr ? fallback : found->get<T>();
  }

 private:
  friend class JsonReader;
  friend class JsonWriter;

  [[nodiscard]] bool get_bool() const;
  [[nodiscard]] double get_double() const;
  [[nodiscard]] const std::string& get_string() const;
  [[nodiscard]] std::int64_t get_signed(std::int64_t least, std::int64_t most) const;
  [[nodiscard]] std::uint64_t get_unsigned(std::uint64_t most) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array,
               Object>
      value_;
};

}  // namespace hocket::program
