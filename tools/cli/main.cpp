// hocket: the command that launches, inspects and explains.
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/text.hpp"
#include "command.hpp"
#include "info.hpp"
#include "plan.hpp"
#include "run.hpp"
#include "sim.hpp"
#include "store.hpp"

namespace hocket::cli {
namespace {

/// "hocket info" for the parser of info.
std::string full_name(const CLI::App& parser) {
  const CLI::App* const parent = parser.get_parent();
  return parent == nullptr ? parser.get_name() : full_name(*parent) + " " + parser.get_name();
}

/// The sub-command that the command line went to, or the program itself.
const CLI::App& chosen_parser(const CLI::App& program) {
  const auto chosen = program.get_subcommands();
  return chosen.empty() ? program : chosen_parser(*chosen.front());
}

/// The names of options ("--json") or of sub-commands, whichever kind the word is.
std::vector<std::string> names_like(std::string_view word, const CLI::App& parser) {
  std::vector<std::string> names;
  if (word.starts_with('-')) {
    for (const CLI::Option* option : parser.get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  } else {
    for (const CLI::App* each : parser.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(each->get_name());
    }
  }
  return names;
}

int refuse(const CLI::App& parser, std::string_view why) {
  const std::string name = full_name(parser);
  fmt::print(stderr, "{}: {}\nhint: `{} --help` shows what it takes\n", name, why, name);
  return exit_usage;
}

bool takes_words(const CLI::App& parser) {
  return !parser.get_options([](const CLI::Option* each) { return each->get_positional(); })
              .empty();
}

int refuse_word(const CLI::App& parser, std::string_view word) {
  const std::vector<std::string> names = names_like(word, parser);
  const std::vector<std::string_view> views(names.begin(), names.end());
  std::string why = fmt::format("I don't know {}", word);
  if (const auto nearest = nearest_name(word, views)) {
    why += fmt::format("; did you mean {}?", *nearest);
  } else if (word.starts_with('-') && takes_words(parser)) {
    why += "\nhint: behind `--` it is a value";
  }
  return refuse(parser, why);
}

std::vector<CLI::App*> find_command(CLI::App& parser, std::string_view name) {
  return parser.get_subcommands([name](const CLI::App* each) { return each->get_name() == name; });
}

/// `hocket help info` says the same as `hocket info --help`.
int help(CLI::App& program, std::span<char* const> words) {
  CLI::App* about = &program;
  std::string parents;
  for (const std::string_view word : words) {
    if (word == "-h" || word == "--help") continue;
    const auto found = find_command(*about, word);
    if (found.empty()) return refuse_word(*about, word);
    parents = full_name(*about);
    about = found.front();
  }
  fmt::print("{}", about->help(parents));
  return exit_success;
}

/// How many words the parsers are to see: those behind them are for a program that is started.
int words_to_parse(std::span<char* const> words, std::span<const Command> commands) {
  std::size_t count = words.size();
  for (const Command& command : commands) {
    if (count < 2 || !command.leave_words || words[1] != command.parser->get_name()) continue;
    count = 2 + command.leave_words(words.subspan(2));
  }
  return static_cast<int>(count);
}

int run(int argc, char** argv) {
  CLI::App program("Hocket: collective communication between processes.", "hocket");
  program.set_help_flag("-h,--help", "Show this help");
  program.set_version_flag("--version",
                           fmt::format("hocket {} (C ABI {})", version(), hocket_abi_version()),
                           "Show the version");
  const Command commands[] = {info_command(program), plan_command(program), run_command(program),
                              sim_command(program), store_command(program)};

  const std::span words(argv, static_cast<std::size_t>(argc));
  if (words.size() > 1 && words[1] == std::string_view("help")) {
    return help(program, words.subspan(2));
  }
  try {
    program.parse(words_to_parse(words, commands), argv);
  } catch (const CLI::ParseError& error) {
    // To be asked for help or the version is an "error" too.
    if (error.get_exit_code() == 0) return program.exit(error);
    const CLI::App& parser = chosen_parser(program);
    const std::vector<std::string> unknown = program.remaining(true);
    return unknown.empty() ? refuse(parser, error.what()) : refuse_word(parser, unknown.front());
  }
  for (const Command& command : commands) {
    if (command.parser->parsed()) return command.run();
  }
  fmt::print(stderr, "{}", program.help());
  return exit_usage;
}

}  // namespace
}  // namespace hocket::cli

int main(int argc, char** argv) {
  try {
    const int status = hocket::cli::run(argc, argv);
    if (std::fflush(stdout) == 0) return status;
    std::perror("hocket: stdout can't be written");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket: %s\n", error.what());
  }
  return hocket::cli::exit_failure;
}
