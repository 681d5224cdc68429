#include "program/parser.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::program {
namespace {

constexpr std::size_t help_column = 30;

bool looks_like_option(std::string_view word) noexcept {
  return word.size() > 1 && word.front() == '-';
}

/// A negative number is a value.
bool looks_like_value(std::string_view word) noexcept {
  return !looks_like_option(word) || word[1] == '.' || (word[1] >= '0' && word[1] <= '9');
}

/// A line of a table: what something is called, and what it is.
std::string row(std::string_view left, std::string_view right) {
  const std::string start = fmt::format("  {}", left);
  if (right.empty()) return fmt::format("{}\n", start);
  if (start.size() < help_column) return fmt::format("{:<{}}{}\n", start, help_column, right);
  return fmt::format("{}\n{:{}}{}\n", start, "", help_column, right);
}

}  // namespace

Parser::Parser(std::string name, std::string summary)
    : name_(std::move(name)), summary_(std::move(summary)) {}

Parser& Parser::add_command(std::string name, std::string summary) {
  auto command = std::make_unique<Parser>(std::move(name), std::move(summary));
  command->parent_ = this;
  return *commands_.emplace_back(std::move(command));
}

Option& Parser::add_option(std::string_view names, Target target, std::string_view help) {
  const auto kind = names.starts_with('-') ? Option::Kind::option : Option::Kind::positional;
  return *options_.emplace_back(new Option(kind, names, target, help));
}

Option& Parser::add_flag(std::string_view names, bool* target, std::string_view help) {
  return *options_.emplace_back(new Option(Option::Kind::flag, names, target, help));
}

std::string Parser::full_name() const {
  return parent_ == nullptr ? name_ : fmt::format("{} {}", parent_->full_name(), name_);
}

/// The footer of this parser or, if it has none, that of the nearest parent with one.
const std::string& Parser::footer() const noexcept {
  return footer_.empty() && parent_ != nullptr ? parent_->footer() : footer_;
}

std::string Parser::usage() const {
  std::string usage = fmt::format("Usage: {} [OPTIONS]", full_name());
  for (const auto& each : options_) {
    if (each->kind_ != Option::Kind::positional) continue;
    const std::string word = each->name() + (each->is_list() ? "..." : "");
    usage += fmt::format(fmt::runtime(each->is_required_ ? " {}" : " [{}]"), word);
  }
  if (!commands_.empty()) usage += action_ ? " [SUBCOMMAND]" : " SUBCOMMAND";
  return usage + "\n";
}

std::string Parser::help() const {
  std::string words;
  std::string options = row("-h,--help", "Show this help");
  std::string commands;
  if (!version_.empty()) options += row("--version", "Show the version");
  for (const auto& each : options_) {
    if (each->is_hidden_) continue;
    const bool is_word = each->kind_ == Option::Kind::positional;
    (is_word ? words : options) += row(each->label(), each->help_);
  }
  for (const auto& each : commands_) commands += row(each->name_, each->summary_);
  std::string text = fmt::format("{}\n{}", summary_, usage());
  if (!words.empty()) text += fmt::format("\nPositionals:\n{}", words);
  text += fmt::format("\nOptions:\n{}", options);
  if (!commands.empty()) text += fmt::format("\nSubcommands:\n{}", commands);
  if (!footer().empty()) text += fmt::format("\n{}\n", footer());
  return text;
}

Parser* Parser::find_command(std::string_view name) const noexcept {
  const auto found = std::ranges::find(
      commands_, name, [](const auto& each) -> const auto& { return each->name_; });
  return found == commands_.end() ? nullptr : found->get();
}

Option* Parser::find_option(std::string_view name) const noexcept {
  for (const auto& each : options_) {
    if (each->answers_to(name)) return each.get();
  }
  const bool is_shared = parent_ != nullptr && parent_->shares_options_;
  return is_shared ? parent_->find_option(name) : nullptr;
}

bool Parser::takes_words() const noexcept {
  return rest_ != nullptr || !commands_.empty() ||
         std::ranges::any_of(
             options_, [](const auto& each) { return each->kind_ == Option::Kind::positional; });
}

/// The names of options or of commands, whichever kind the word is.
std::vector<std::string> Parser::names_like(std::string_view word) const {
  std::vector<std::string> names;
  if (!looks_like_option(word)) {
    for (const auto& each : commands_) names.push_back(each->name_);
    return names;
  }
  names.emplace_back("--help");
  if (!version_.empty()) names.emplace_back("--version");
  for (const Parser* parser = this; parser != nullptr; parser = parser->parent_) {
    if (parser != this && !parser->shares_options_) break;
    for (const auto& each : parser->options_) {
      if (each->kind_ == Option::Kind::positional || each->is_hidden_) continue;
      names.push_back(each->name());
      if (!each->negation_.empty()) names.push_back(each->negation_);
    }
  }
  return names;
}

int Parser::refuse(std::string_view why) const {
  const std::string name = full_name();
  fmt::print(stderr, "{}: {}\nhint: `{} --help` shows what it takes\n", name, why, name);
  return exit_usage;
}

void Parser::refuse_word(std::string_view word) const {
  const std::vector<std::string> names = names_like(word);
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string why = fmt::format("I don't know {}", word);
  if (const auto nearest = nearest_name(word, views)) {
    why += fmt::format("; did you mean {}?", *nearest);
  } else if (looks_like_option(word) && commands_.empty() && takes_words()) {
    why += "\nhint: behind `--` it is a value";
  }
  throw UsageError(why);
}

/// `hocket help info` says the same as `hocket info --help`.
void Parser::show_help(const Words& words, Parser*& about) {
  for (const std::string& word : words) {
    if (&word == &words.front() || word == "-h" || word == "--help") continue;
    Parser* const found = about->find_command(word);
    if (found == nullptr) about->refuse_word(word);
    about = found;
  }
  fmt::print("{}", about->help());
}

/// Returns false if help or the version was printed, which is all that is to be done then.
bool Parser::read_option(const Words& words, std::size_t& at) {
  const std::string& word = words[at++];
  const bool is_long = word.starts_with("--");
  const std::size_t end = is_long ? std::min(word.find('='), word.size()) : 2;
  const std::string name = word.substr(0, end);
  std::optional<std::string> value;
  if (end < word.size()) value = word.substr(is_long ? end + 1 : end);
  const bool is_version = name == "--version" && !version_.empty();
  if (name == "-h" || name == "--help" || is_version) {
    fmt::print("{}", is_version ? version_ : help());
    return false;
  }
  Option* const option = find_option(name);
  const bool is_flag = option != nullptr && option->kind_ == Option::Kind::flag;
  if (option == nullptr || (is_flag && value && !is_long)) refuse_word(is_long ? name : word);
  if (is_flag) {
    option->take_flag(name, value);
    return true;
  }
  if (!value) {
    const bool is_there = at < words.size() && looks_like_value(words[at]);
    if (!is_there) throw UsageError(option->name(), "its value is missing");
    value = words[at++];
  }
  if (value->empty() && refuses_empty_) throw UsageError(option->name(), "its value is empty");
  option->take(*value);
  while (option->is_list() && !takes_words() && at < words.size() && looks_like_value(words[at])) {
    option->take(words[at++]);
  }
  return true;
}

/// The parser of the words behind this one.
Parser& Parser::read_word(const std::string& word) {
  if (Parser* const command = find_command(word)) return *command;
  for (const auto& each : options_) {
    if (each->kind_ != Option::Kind::positional || (each->is_given_ && !each->is_list())) continue;
    each->take(word);
    return *this;
  }
  refuse_word(word);
}

/// Returns false if help or the version was printed.
bool Parser::read(const Words& words, Parser*& chosen) {
  bool are_values = false;
  for (std::size_t at = 0; at < words.size();) {
    const std::string& word = words[at];
    const bool is_mark = !are_values && word == "--";
    const bool is_option = !are_values && !is_mark && looks_like_option(word) &&
                           (chosen->rest_ != nullptr || !looks_like_value(word));
    if (is_option) {
      if (!chosen->read_option(words, at)) return false;
      continue;
    }
    if (chosen->rest_ != nullptr) {
      const std::size_t first = is_mark ? at + 1 : at;
      chosen->rest_->assign(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
      return true;
    }
    ++at;
    if (is_mark) {
      are_values = true;
    } else {
      chosen = &chosen->read_word(word);
    }
  }
  return true;
}

void Parser::check() const {
  if (!action_) throw UsageError("a subcommand is required");
  for (const auto& each : options_) {
    if (each->is_required_ && !each->is_given_) {
      throw UsageError(fmt::format("{} is required", each->name()));
    }
    for (const Option* other : each->excluded_) {
      if (!each->is_given_ || !other->is_given_) continue;
      throw UsageError(fmt::format("{} excludes {}", each->name(), other->name()));
    }
  }
}

int Parser::run(const Words& words) {
  Parser* chosen = this;
  try {
    if (!words.empty() && words.front() == "help") {
      show_help(words, chosen);
      return exit_success;
    }
    if (!read(words, chosen)) return exit_success;
    chosen->check();
    return chosen->action_();
  } catch (const UsageError& error) {
    return chosen->refuse(error.what());
  }
}

int run(Parser& program, int argc, char** argv) {
  const std::string name = program.name();
  try {
    const int status = program.run({argv + std::min(argc, 1), argv + argc});
    if (std::fflush(stdout) == 0) return status;
    std::perror(fmt::format("{}: stdout can't be written", name).c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), error.what());
  }
  return exit_failure;
}

}  // namespace hocket::program
