// hocket: the command that launches, inspects and explains.
#include <cstdio>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "info.hpp"
#include "plan.hpp"
#include "program/parser.hpp"
#include "run.hpp"
#include "sim.hpp"
#include "store.hpp"
#include "trace.hpp"

int main(int argc, char** argv) {
  using namespace hocket;
  program::Parser program("hocket", "Hocket: collective communication between processes.");
  program.set_version(fmt::format("hocket {} (C ABI {})", version(), hocket_abi_version()));
  program.on_run([&program] {
    fmt::print(stderr, "{}", program.help());
    return program::exit_usage;
  });
  cli::add_info_command(program);
  cli::add_plan_command(program);
  cli::add_run_command(program);
  cli::add_sim_command(program);
  cli::add_store_command(program);
  cli::add_trace_command(program);
  return program::run(program, argc, argv);
}
