// Joins a world as its environment says (or the URL that is the argument), prints one line about
// it, waits for the others (not with --leave), and ends; with --linger it does some seconds later.
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "world/rendezvous.hpp"

int main(int argc, char** argv) {
  using namespace hocket;
  const std::string_view argument = argc > 1 ? argv[1] : "";
  const bool leaves = argument == "--leave";
  auto world = world::rendezvous({.url = std::string(argument.starts_with("--") ? "" : argument)},
                                 process_environment(), process_config());
  Status status = world.status();
  if (status.ok()) {
    fmt::print("rank={} size={} local_rank={} local_size={} attempt={} job={} address={} by={}\n",
               world->rank, world->size, world->local_rank, world->local_size, world->id.attempt,
               world->job, world->address, world->launcher);
    std::fflush(stdout);
    world::let_all_in(*world, limits::cards_farewell);
    if (argument == "--linger") std::this_thread::sleep_for(std::chrono::seconds(5));
    if (!leaves) status = world->store->barrier("end", world->size);
  }
  if (status.ok()) return 0;
  fmt::print("{}\n", status.to_string());
  return 1;
}
