// hocket-bench: measures what Hocket does on this machine or cluster.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/text.hpp"
#include "collectives.hpp"
#include "kernels.hpp"
#include "overlap.hpp"
#include "sendrecv.hpp"
#include "steps.hpp"
#include "store.hpp"
#include "tune.hpp"

namespace {

/// The options of the command, or the commands, whichever kind the word is.
std::vector<std::string> names_like(std::string_view word, const CLI::App& program) {
  std::vector<std::string> names;
  if (!word.starts_with('-')) {
    for (const CLI::App* each : program.get_subcommands([](const CLI::App*) { return true; })) {
      names.push_back(each->get_name());
    }
    return names;
  }
  for (const CLI::App* parser : program.get_subcommands()) {
    for (const CLI::Option* option : parser->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

int refuse(const CLI::App& program, const CLI::ParseError& error) {
  std::string command = program.get_name();
  for (const CLI::App* parser : program.get_subcommands()) command += " " + parser->get_name();
  const std::vector<std::string> unknown = program.remaining(true);
  std::string why = error.what();
  if (!unknown.empty()) {
    const std::vector<std::string> names = names_like(unknown.front(), program);
    const std::vector<std::string_view> views(names.begin(), names.end());
    const auto nearest = hocket::nearest_name(unknown.front(), views);
    why = fmt::format("I don't know {}", unknown.front());
    if (nearest) why += fmt::format("; did you mean {}?", *nearest);
  }
  fmt::print(stderr, "{}: {}\nhint: `{} --help` shows what it takes\n", command, why, command);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App program("Measures Hocket.", "hocket-bench");
  program.set_version_flag("--version", std::string(hocket::version()));
  program.require_subcommand(1);
  const std::vector<std::string> words(argv + 1, argv + argc);
  hocket::bench::add_collective_commands(program, words);
  hocket::bench::add_overlap_command(program, words);
  hocket::bench::add_sendrecv_command(program, words);
  hocket::bench::add_kernels_command(program);
  hocket::bench::add_store_command(program);
  hocket::bench::add_steps_command(program);
  hocket::bench::add_tune_command(program);
  try {
    program.parse(argc, argv);
    if (std::fflush(stdout) == 0) return 0;
    std::perror("hocket-bench: stdout can't be written");
  } catch (const CLI::RuntimeError& error) {
    return error.get_exit_code();  // which has said why
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? program.exit(error) : refuse(program, error);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket-bench: %s\n", error.what());
  }
  return 1;
}
