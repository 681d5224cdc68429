// A rank of a world that tries the C++ API: `collectives PART [ARGUMENT]`. Prints a line for each
// failure, and ends with 0 if there was none.
#include <cstdio>
#include <exception>
#include <string_view>

#include "hocket/hocket.hpp"

#include "integration/collectives/batches.hpp"
#include "integration/collectives/crowd.hpp"
#include "integration/collectives/groups.hpp"
#include "integration/collectives/matrix.hpp"
#include "integration/collectives/mistakes.hpp"
#include "integration/collectives/troubles.hpp"

namespace hocket::testing {
namespace {

bool run_part(std::string_view part, std::string_view only, Communicator& world, Report& report) {
  if (part == "some") {
    run_matrix(world, Extent::some, only, report);
  } else if (part == "more") {
    run_matrix(world, Extent::more, only, report);
  } else if (part == "all") {
    run_matrix(world, Extent::all, only, report);
  } else if (part == "groups") {
    try_splits(world, report);
    try_works(world, report);
    try_prepared(world, report);
  } else if (part == "batches") {
    try_batches(world, report);
  } else if (part == "too_large") {
    try_too_large_batch(world, report);
  } else if (part == "crowd") {
    try_threads(world, report);
    try_orders(world, report);
  } else if (part == "mistakes") {
    try_mistakes(world, report);
  } else {
    return false;
  }
  world.barrier();
  return true;
}

int run(std::string_view part, std::string_view argument) {
  Report report;
  Communicator world = join();
  if (!run_part(part, argument, world, report) && !try_trouble(part, world, report)) {
    report.add("there is no such part");
  }
  return report.status();
}

}  // namespace
}  // namespace hocket::testing

int main(int argc, char** argv) try {
  return hocket::testing::run(argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
} catch (const std::exception& error) {
  std::printf("FAILED %s\n", error.what());
  return 1;
}
