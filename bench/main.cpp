// hocket-bench: measures what Hocket does on this machine or cluster.
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include "hocket/hocket.hpp"

#include "kernels.hpp"
#include "start.hpp"
#include "store.hpp"

int main(int argc, char** argv) {
  CLI::App program("Measures Hocket.", "hocket-bench");
  program.set_version_flag("--version", std::string(hocket::version()));
  program.require_subcommand(1);
  hocket::bench::add_kernels_command(program);
  hocket::bench::add_store_command(program);
  hocket::bench::add_start_command(program);
  try {
    program.parse(argc, argv);
    if (std::fflush(stdout) == 0) return 0;
    std::perror("hocket-bench: stdout can't be written");
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket-bench: %s\n", error.what());
  }
  return 1;
}
