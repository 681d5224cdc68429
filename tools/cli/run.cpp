#include "run.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "run/agent.hpp"
#include "run/launch.hpp"

namespace hocket::cli {
namespace {

void add_duration(CLI::App& parser, const std::string& name, Duration& to,
                  const std::string& help) {
  const auto read = [&to, name](const std::string& text) {
    const auto duration = parse_duration(text);
    if (!duration) throw CLI::ValidationError(name, text + " is no duration such as 5s or 500ms");
    to = *duration;
  };
  parser.add_option_function<std::string>(name, read, help)->type_name("DURATION");
}

void add_local_options(CLI::App& parser, run::Options& options) {
  parser
      .add_option("-n,--ranks", options.ranks, "Ranks on each host, not of all (its slots, or 1)")
      ->check(CLI::Range(1, limits::world_size_max));
  parser.add_flag("--tag-output,!--no-tag-output", options.tags,
                  "Begin each line of output with the rank, as [3] (the default)");
  parser
      .add_option("--output-dir", options.output_folder,
                  "Also write each rank's output to DIR/rank-N.out and .err")
      ->type_name("DIR");
  add_duration(parser, "--grace", options.grace,
               "Time from SIGTERM to SIGKILL when ranks are ended (5s)");
  parser
      .add_option("--max-restarts", options.restarts_max,
                  "Start all ranks anew after a failure, at most so many times")
      ->check(CLI::NonNegativeNumber);
  parser.add_option("--job", options.job, "The job's name (made up)")->type_name("NAME");
  parser.add_flag("--dry-run", options.is_dry, "Only show what would be started")
      ->disable_flag_override();
}

void add_host_options(CLI::App& parser, run::Options& options) {
  parser.add_option("--hosts", options.hosts, "The hosts with their slots, as a:4,b:4")
      ->type_name("LIST");
  parser
      .add_option("--hostfile", options.host_file,
                  "The same as a file: a host a line, as \"a slots=4\" or \"a:4\"")
      ->type_name("FILE");
  parser.add_option("--rsh", options.rsh, "The remote shell (ssh, which may ask nothing)")
      ->type_name("COMMAND");
  parser.add_option("--hocket", options.hocket, "The path of hocket on the other hosts (as here)")
      ->type_name("PATH");
  parser
      .add_option("-x,--export", options.exports,
                  "A variable for all hosts: NAME, as it is here, or NAME=VALUE")
      ->type_name("VARIABLE")
      ->allow_extra_args(false);
  parser
      .add_option("--nnodes", options.nodes,
                  "Nodes, when a scheduler starts this launcher on each of them")
      ->check(CLI::Range(1, limits::world_size_max));
  parser.add_option("--node-rank", options.node, "Which of them this one is")
      ->check(CLI::NonNegativeNumber);
  parser
      .add_option("--master", options.master,
                  "Where the first node serves the job's store; port 0 picks one")
      ->type_name("HOST:PORT");
  add_duration(parser, "--timeout", options.timeout, "Time for all nodes to come together (5m)");
}

/// To name nothing is no way to leave an option out: a script's variable was empty.
void refuse_empty(CLI::App& parser) {
  for (CLI::Option* option : parser.get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check([](const std::string& text) { return text.empty() ? "its value is empty" : ""; });
  }
}

/// Whether the option's value is the next word.
bool takes_next_word(const CLI::App& parser, std::string_view word) {
  const bool is_long = word.starts_with("--");
  const std::string name(word.substr(0, is_long ? word.find('=') : 2));
  const CLI::Option* const option = parser.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0 && name.size() == word.size();
}

/// Where the program begins: behind "--", or at the first word that is neither an option nor the
/// value of one.
std::size_t take_program(const CLI::App& parser, std::span<char* const> words,
                         run::Options& options) {
  std::size_t count = 0;
  while (count < words.size() && words[count][0] == '-' && words[count] != std::string_view("--")) {
    count += takes_next_word(parser, words[count]) ? 2U : 1U;
  }
  count = std::min(count, words.size());
  const std::span<char* const> rest = words.subspan(count);
  const bool is_marked = !rest.empty() && rest.front() == std::string_view("--");
  options.command.assign(rest.begin() + (is_marked ? 1 : 0), rest.end());
  return count;
}

}  // namespace

Command run_command(CLI::App& program) {
  const auto options = std::make_shared<run::Options>();
  CLI::App* const parser = program.add_subcommand("run", "Start a program as the ranks of a job");
  parser->footer("Then the program and its arguments: hocket run -n 4 [--] PROGRAM [ARGUMENTS]");
  add_local_options(*parser, *options);
  add_host_options(*parser, *options);
  refuse_empty(*parser);
  const auto is_agent = std::make_shared<bool>(false);
  parser->add_flag("--agent", *is_agent)->group("");  // what the head starts on other hosts
  parser->parse_complete_callback([options, is_agent] {
    if (options->command.empty() && !*is_agent) throw CLI::RequiredError("the program to run");
  });
  return {parser,
          [options, is_agent] { return *is_agent ? run::serve_as_agent() : run::launch(*options); },
          [parser, options](std::span<char* const> words) {
            return take_program(*parser, words, *options);
          }};
}

}  // namespace hocket::cli
