#include "run.hpp"

#include <memory>

#include "base/limits.hpp"
#include "run/agent.hpp"
#include "run/launch.hpp"

namespace hocket::cli {
namespace {

void add_local_options(program::Parser& parser, run::Options& options) {
  parser
      .add_option("-n,--ranks", &options.ranks, "Ranks on each host, not of all (its slots, or 1)")
      .in_range(1, limits::world_size_max);
  parser.add_flag("--tag-output,!--no-tag-output", &options.tags,
                  "Begin each line of output with the rank, as [3] (the default)");
  parser
      .add_option("--output-dir", &options.output_folder,
                  "Also write each rank's output to DIR/rank-N.out and .err")
      .type("DIR");
  parser.add_option("--grace", &options.grace,
                    "Time from SIGTERM to SIGKILL when ranks are ended (5s)");
  parser
      .add_option("--max-restarts", &options.restarts_max,
                  "Start all ranks anew after a failure, at most so many times")
      .not_negative();
  parser.add_option("--job", &options.job, "The job's name (made up)").type("NAME");
  parser.add_flag("--dry-run", &options.is_dry, "Only show what would be started");
}

void add_host_options(program::Parser& parser, run::Options& options) {
  parser.add_option("--hosts", &options.hosts, "The hosts with their slots, as a:4,b:4")
      .type("LIST");
  parser
      .add_option("--hostfile", &options.host_file,
                  "The same as a file: a host a line, as \"a slots=4\" or \"a:4\"")
      .type("FILE");
  parser.add_option("--rsh", &options.rsh, "The remote shell (ssh, which may ask nothing)")
      .type("COMMAND");
  parser.add_option("--hocket", &options.hocket, "The path of hocket on the other hosts (as here)")
      .type("PATH");
  parser
      .add_option("-x,--export", &options.exports,
                  "A variable for all hosts: NAME, as it is here, or NAME=VALUE")
      .type("VARIABLE");
  parser
      .add_option("--nnodes", &options.nodes,
                  "Nodes, when a scheduler starts this launcher on each of them")
      .in_range(1, limits::world_size_max);
  parser.add_option("--node-rank", &options.node, "Which of them this one is").not_negative();
  parser
      .add_option("--master", &options.master,
                  "Where the first node serves the job's store; port 0 picks one")
      .type("HOST:PORT");
  parser.add_option("--timeout", &options.timeout, "Time for all nodes to come together (5m)");
}

}  // namespace

void add_run_command(program::Parser& program) {
  struct Options {
    run::Options run;
    bool is_agent = false;
  };
  const auto options = std::make_shared<Options>();
  program::Parser& parser = program.add_command("run", "Start a program as the ranks of a job");
  parser.set_footer("Then the program and its arguments: hocket run -n 4 [--] PROGRAM [ARGUMENTS]");
  add_local_options(parser, options->run);
  add_host_options(parser, options->run);
  // What the launcher starts on other hosts.
  parser.add_flag("--agent", &options->is_agent).hidden();
  parser.refuse_empty_values();
  parser.leave_words(&options->run.command);
  parser.on_run([options] {
    if (options->is_agent) return run::serve_as_agent();
    if (options->run.command.empty()) {
      throw program::UsageError("the program to run is required");
    }
    return run::launch(options->run);
  });
}

}  // namespace hocket::cli
