#include "run.hpp"

#include <memory>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "base/text.hpp"
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
  parser.add_option("-n,--ranks", options.ranks, "Ranks on each host")
      ->check(CLI::Range(1, limits::world_size_max));
  parser.add_flag("--tag-output,!--no-tag-output", options.tags,
                  "Begin each line of output with the rank, as [3] (the default)");
  parser.add_option("--output-dir", options.output_folder,
                    "Also write each rank's output to DIR/rank-N.out and .err")
      ->type_name("DIR");
  add_duration(parser, "--grace", options.grace,
               "Time from SIGTERM to SIGKILL when ranks are ended (5s)");
  parser.add_option("--max-restarts", options.restarts_max,
                    "Start all ranks anew after a failure, at most so many times")
      ->check(CLI::NonNegativeNumber);
  parser.add_option("--job", options.job, "The job's name (made up)")->type_name("NAME");
  parser.add_flag("--dry-run", options.is_dry, "Only show what would be started")
      ->disable_flag_override();
}

/// What is left is the program, unless it looks like an option that nobody knows.
void take_program(const CLI::App& parser, run::Options& options) {
  options.command = parser.remaining();
  if (options.command.empty()) throw CLI::RequiredError("the program to run");
  const std::string& first = options.command.front();
  if (first.starts_with('-')) throw CLI::ExtrasError(parser.get_name(), options.command);
}

}  // namespace

Command run_command(CLI::App& program) {
  const auto options = std::make_shared<run::Options>();
  CLI::App* const parser = program.add_subcommand("run", "Start a program as the ranks of a job");
  parser->footer("Then the program and its arguments: hocket run -n 4 [--] PROGRAM [ARGUMENTS]");
  parser->prefix_command();
  add_local_options(*parser, *options);
  parser->parse_complete_callback([parser, options] { take_program(*parser, *options); });
  return {parser, [options] { return run::launch(*options); }};
}

}  // namespace hocket::cli
