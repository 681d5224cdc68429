// hocket-bench: measures what Hocket does on this machine or cluster.
#include <string>

#include <CLI/CLI.hpp>

#include "hocket/hocket.hpp"

#include "kernels.hpp"

int main(int argc, char** argv) {
  CLI::App program("Measures Hocket.", "hocket-bench");
  program.set_version_flag("--version", std::string(hocket::version()));
  program.require_subcommand(1);
  hocket::bench::add_kernels_command(program);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return program.exit(error) == 0 ? 0 : 2;
  } catch (const hocket::Error& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
    return 1;
  }
  return 0;
}
