// hocket-bench: measures what Hocket does on this machine or cluster.
#include <string>
#include <vector>

#include "hocket/hocket.hpp"

#include "collectives.hpp"
#include "kernels.hpp"
#include "overlap.hpp"
#include "program/parser.hpp"
#include "sendrecv.hpp"
#include "steps.hpp"
#include "store.hpp"
#include "tune.hpp"

int main(int argc, char** argv) {
  hocket::program::Parser program("hocket-bench", "Measures Hocket.");
  program.set_version(std::string(hocket::version()));
  const std::vector<std::string> words(argv + 1, argv + argc);
  hocket::bench::add_collective_commands(program, words);
  hocket::bench::add_overlap_command(program, words);
  hocket::bench::add_sendrecv_command(program, words);
  hocket::bench::add_kernels_command(program);
  hocket::bench::add_store_command(program);
  hocket::bench::add_steps_command(program);
  hocket::bench::add_tune_command(program);
  return hocket::program::run(program, argc, argv);
}
