#include "trace/verdict.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tag.hpp"
#include "plan/catalog.hpp"
#include "support/catch.hpp"
#include "trace/communicator.hpp"

namespace hocket::trace {
namespace {

using record::Entry;
using record::Life;
using record::State;

constexpr std::int64_t second = 1'000'000'000;
constexpr std::int64_t now = 100 * second;

std::uint64_t tag(ReduceOp op) {
  const auto* algorithm = plan::find_algorithm(plan::Operation::all_reduce, "ring");
  return engine::Tag(*algorithm, 0, 8).with(DataType::f32).with(op).bits();
}

/// A world of so many ranks, all of which have done operations 1 and 2 of its communicator.
World world_of(std::uint32_t size) {
  World world = {.id = 1, .size = size};
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    Dump dump;
    dump.header.magic = record::magic;
    dump.header.rank = rank;
    dump.header.size = size;
    dump.header.pid = static_cast<std::int32_t>(100 + rank);
    dump.header.host = {'n', '1'};
    dump.header.groups[0] = {.id = 0, .rank = rank, .size = size, .is_open = 1};
    dump.life = Life::running;
    dump.now = now;
    for (std::uint64_t number = 1; number <= 2; ++number) {
      dump.entries.push_back({.sequence = number,
                              .number = number,
                              .tag = tag(ReduceOp::sum),
                              .begun = now - 4 * second,
                              .ended = now - 3 * second,
                              .peer = record::nobody,
                              .state = State::done});
    }
    world.dumps.push_back(dump);
  }
  return world;
}

Entry& enter(World& world, std::uint32_t rank, std::uint64_t number, std::uint32_t peer,
             std::uint32_t step) {
  auto& entries = world.dumps[rank].entries;
  entries.push_back({.sequence = entries.size() + 1,
                     .number = number,
                     .tag = tag(ReduceOp::sum),
                     .begun = now - 2 * second,
                     .peer = peer,
                     .step = step,
                     .state = State::running});
  return entries.back();
}

using Sentences = std::vector<std::string>;

}  // namespace

TEST_CASE("where nothing is under way the verdict says so") {
  World world = world_of(3);
  CHECK(verdict(world) == Sentences{"No operation is under way."});
  for (Dump& each : world.dumps) each.life = Life::left;
  CHECK(verdict(world) ==
        Sentences{"All ranks have left the world, and all their operations were done."});
}

TEST_CASE("the rank that never came is named, with those that wait for it and for them") {
  World world = world_of(3);
  enter(world, 0, 3, 2, 4);
  enter(world, 1, 3, 0, 1);
  CHECK(verdict(world) ==
        Sentences{"Rank 2 never entered all_reduce(sum, f32, 8 elements) #3: it ended "
                  "all_reduce(sum, f32, 8 elements) #2 3s ago, and has called nothing since. Rank "
                  "0 waits for it in step 4 of all_reduce(sum, f32, 8 elements) #3.",
                  "In all_reduce(sum, f32, 8 elements) #3, rank 1 waits for rank 0 in step 1 since "
                  "2s."});
}

TEST_CASE("a rank that is stopped or dead comes first") {
  World world = world_of(2);
  enter(world, 0, 3, 1, 5);
  world.dumps[1].life = Life::stopped;
  CHECK(verdict(world) ==
        Sentences{"Rank 1 (pid 101 on n1) is stopped, by a signal or a debugger, after "
                  "all_reduce(sum, f32, 8 elements) #2 was done. Rank 0 waits for it in step 5 of "
                  "all_reduce(sum, f32, 8 elements) #3."});
  enter(world, 1, 3, record::nobody, 0);
  world.dumps[1].life = Life::gone;
  world.dumps[0].entries.back().state = State::failed;
  CHECK(verdict(world) ==
        Sentences{"Rank 1 (pid 101 on n1) ended without leaving the world, in all_reduce(sum, f32, "
                  "8 elements) #3. Rank 0 waited for it in step 5 of all_reduce(sum, f32, 8 "
                  "elements) #3."});
}

TEST_CASE("different calls are set against each other") {
  World world = world_of(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) enter(world, rank, 3, (rank + 1) % 4, 1);
  world.dumps[2].entries.back().tag = tag(ReduceOp::max);
  const Sentences said = verdict(world);
  REQUIRE(said.size() == 1);
  CHECK(said[0].find("anks 0, 1 and 3 called all_reduce(sum, f32, 8 elements) #3") !=
        std::string::npos);
  CHECK(said[0].find("ank 2 called all_reduce(max, f32, 8 elements) #3") != std::string::npos);
}

TEST_CASE("ranks without records are missing, and who waits for them is told") {
  World world = world_of(3);
  enter(world, 0, 3, 2, 4);
  world.dumps.pop_back();
  const Sentences said = verdict(world);
  CHECK(said.at(0) == "There are no records of rank 2: it may have died, or runs on another host.");
  CHECK(said.at(1) == "Rank 0 waits for rank 2 in step 4 of all_reduce(sum, f32, 8 elements) #3.");
}

TEST_CASE("a rank that waits elsewhere is late because of that") {
  World world = world_of(3);
  for (std::uint32_t rank = 1; rank < 3; ++rank) {
    world.dumps[rank].header.groups[1] = {.id = 5, .rank = rank - 1, .size = 2, .is_open = 1};
  }
  enter(world, 0, 3, 2, 4);
  enter(world, 1, 3, 2, 4);
  Entry& elsewhere = enter(world, 2, 1, 0, 7);
  elsewhere.communicator = 5;
  const Sentences said = verdict(world);
  CHECK(said.at(0).find("Rank 2 never entered all_reduce(sum, f32, 8 elements) #3: it is in "
                        "all_reduce(sum, f32, 8 elements) #1 of communicator 5 since 2s.") == 0);
  CHECK(said.at(1).find("Rank 1 never entered all_reduce(sum, f32, 8 elements) #1 of communicator "
                        "5") == 0);
}

TEST_CASE("a message that is awaited is named with its tag") {
  World world = world_of(2);
  Entry& entry = enter(world, 0, 0, 1, 0);
  entry.kind = record::kind_receive;
  entry.tag = 7;
  entry.bytes = 64;
  CHECK(verdict(world) == Sentences{"Rank 0 is in recv(64 bytes, tag 7) from rank 1 since 2s."});
}

TEST_CASE("all ranks that were told the same are named together") {
  World world = world_of(3);
  for (Dump& each : world.dumps) each.header.failure = {'o', 'h'};
  world.dumps[1].header.failure = {'n', 'o'};
  CHECK(verdict(world) == Sentences{"No operation is under way.", "Rank 1 was told: no",
                                    "Ranks 0 and 2 were told: oh"});
}

TEST_CASE("ranks in words") {
  CHECK(ranks_in_words({4}) == "rank 4");
  CHECK(ranks_in_words({4, 2}) == "ranks 2 and 4");
  CHECK(ranks_in_words({0, 1, 2, 5}) == "ranks 0 to 2 and 5");
  CHECK(ranks_in_words({0, 1, 3, 4, 5, 6, 9}) == "ranks 0, 1, 3 to 6 and 9");
}

}  // namespace hocket::trace
