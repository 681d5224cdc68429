// Command lines: a program declares its commands and options, and run() reads the words, answers
// --help and --version, refuses what it does not know, and calls the command that was chosen.
//
//   Options are written as "-n 4", "-n4", "--ranks 4" or "--ranks=4", flags as "--json"; "--" ends
//   them, and all words behind it are values. A negative number is a value as well.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "program/option.hpp"

namespace hocket::program {

// Exit statuses, the same for every command.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;  // the command line is wrong

/// A program or one of its commands. Owns its options and commands; borrows their targets.
class Parser {
 public:
  Parser(std::string name, std::string summary);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() = default;

  Parser& add_command(std::string name, std::string summary);
  /// "-n,--ranks", "--ranks", or "operation" for a word that is no option.
  Option& add_option(std::string_view names, Target target, std::string_view help = {});
  /// "--json", or "--tags,!--no-tags" where the second sets it to false.
  Option& add_flag(std::string_view names, bool* target, std::string_view help = {});
  /// What --version prints.
  void set_version(std::string text) { version_ = std::move(text) + "\n"; }
  /// What --help ends with, also for commands that have no footer of their own.
  void set_footer(std::string text) { footer_ = std::move(text); }
  /// Options end at the first other word, or behind "--": all words from there on go to `rest`.
  void leave_words(std::vector<std::string>* rest) { rest_ = rest; }
  /// No option may have an empty value: a script's variable may have been empty.
  void refuse_empty_values() { refuses_empty_ = true; }
  /// Commands take the options of this parser as well.
  void share_options() { shares_options_ = true; }
  /// What this command does once all words are read: returns the exit status, or throws UsageError.
  /// A parser without it needs one of its commands.
  void on_run(std::function<int()> action) { action_ = std::move(action); }

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// What --help prints.
  [[nodiscard]] std::string help() const;
  /// Reads the words behind the program's name, and does what they say. Returns the exit status.
  [[nodiscard]] int run(const std::vector<std::string>& words);

 private:
  using Words = std::vector<std::string>;

  [[nodiscard]] std::string full_name() const;
  [[nodiscard]] std::string usage() const;
  [[nodiscard]] const std::string& footer() const noexcept;
  [[nodiscard]] Parser* find_command(std::string_view name) const noexcept;
  [[nodiscard]] Option* find_option(std::string_view name) const noexcept;
  [[nodiscard]] bool takes_words() const noexcept;
  [[nodiscard]] std::vector<std::string> names_like(std::string_view word) const;
  [[nodiscard]] int refuse(std::string_view why) const;
  [[noreturn]] void refuse_word(std::string_view word) const;
  void show_help(const Words& words, Parser*& about);
  [[nodiscard]] bool read(const Words& words, Parser*& chosen);
  [[nodiscard]] bool read_option(const Words& words, std::size_t& at);
  [[nodiscard]] Parser& read_word(const std::string& word);
  void check() const;

  std::string name_;
  std::string summary_;
  std::string footer_;
  std::string version_;
  Parser* parent_ = nullptr;
  std::vector<std::unique_ptr<Parser>> commands_;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::string>* rest_ = nullptr;
  std::function<int()> action_;
  bool refuses_empty_ = false;
  bool shares_options_ = false;
};

/// The main function of a program: runs the parser on its arguments, and reports exceptions and
/// output that could not be written.
[[nodiscard]] int run(Parser& program, int argc, char** argv);

}  // namespace hocket::program
