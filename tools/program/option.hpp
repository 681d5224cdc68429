// An option of a command line: how it is written, which values it takes, and where they go.
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.hpp"

namespace hocket::program {

/// The command line is wrong. A command may throw it as well: run() then says why, points to
/// --help, and returns exit_usage.
class UsageError : public std::runtime_error {
 public:
  explicit UsageError(const std::string& why) : std::runtime_error(why) {}
  UsageError(std::string_view option, std::string_view why);
};

/// Where the value of an option goes. Its type decides which words are values; lists take the
/// option several times.
using Target =
    std::variant<bool*, int*, std::uint32_t*, std::int64_t*, std::uint64_t*, double*, Duration*,
                 std::string*, std::optional<std::uint32_t>*, std::vector<std::string>*>;

class Option {
 public:
  // What is asked of its values. Each returns the option, so that calls can be chained.
  Option& in_range(std::int64_t least, std::int64_t most);
  Option& not_negative();
  Option& one_of(std::vector<std::string> choices);
  Option& excludes(Option& other);
  Option& required(bool is_required = true);
  /// Of a list: one word may hold several values.
  Option& comma_separated();

  // What --help shows.
  Option& type(std::string name);  // in place of INT, TEXT, …
  Option& with_default();          // what the target holds now
  Option& hidden();

  [[nodiscard]] bool is_given() const noexcept { return is_given_; }

 private:
  friend class Parser;
  enum class Kind { flag, option, positional };

  Option(Kind kind, std::string_view names, Target target, std::string_view help);
  [[nodiscard]] bool is_list() const noexcept;
  [[nodiscard]] bool answers_to(std::string_view name) const noexcept;
  [[nodiscard]] const std::string& name() const noexcept { return names_.back(); }
  void take(std::string_view text);
  void take_flag(std::string_view name, const std::optional<std::string>& value);
  void set(std::string_view text);
  [[nodiscard]] std::int64_t read_integer(std::string_view text, std::int64_t least,
                                          std::int64_t most) const;
  [[nodiscard]] std::string label() const;

  Kind kind_;
  std::vector<std::string> names_;  // as they are written: "-n", "--ranks"
  std::string negation_;            // "--no-tag-output"
  Target target_;
  std::string help_;
  std::string type_;
  std::string default_;
  std::optional<std::int64_t> least_;
  std::optional<std::int64_t> most_;
  std::vector<std::string> choices_;
  std::vector<Option*> excluded_;
  bool is_required_ = false;
  bool is_comma_separated_ = false;
  bool is_hidden_ = false;
  bool is_given_ = false;
};

}  // namespace hocket::program
