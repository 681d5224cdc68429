#include "trace/verdict.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tag.hpp"
#include "plan/catalog.hpp"
#include "support/catch.hpp"
#include "trace/communicator.hpp"
#include "trace/show.hpp"

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
  CHECK(verdict(world) == Sentences{"No recorded operation is under way."});
  for (Dump& each : world.dumps) each.life = Life::left;
  CHECK(verdict(world) ==
        Sentences{"All ranks have left the world, and all their operations were done."});
}

TEST_CASE("the rank that has not come is named, with those that wait for it and for them") {
  World world = world_of(3);
  enter(world, 0, 3, 2, 4);
  enter(world, 1, 3, 0, 1);
  CHECK(verdict(world) ==
        Sentences{"Rank 2 (pid 102 on n1) has not entered all_reduce(sum, f32, 8 elements) #3, "
                  "which rank 0 called 2s ago. Its last recorded operation, all_reduce(sum, f32, 8 "
                  "elements) #2, ended 3s ago. Rank 0 waits for it in step 4 of all_reduce(sum, "
                  "f32, 8 elements) #3.",
                  "In all_reduce(sum, f32, 8 elements) #3, rank 1 waits for rank 0 in step 1."});
}

TEST_CASE("a job that gets on is left in peace") {
  World world = world_of(3);
  enter(world, 0, 3, record::nobody, 0);  // has not waited for long
  CHECK(verdict(world) == Sentences{"Operations are under way, and none of them has stalled."});
  CHECK(findings(world).empty());
  // Rank 1 waited for rank 2, whose records were read before that began.
  enter(world, 1, 3, 2, 1).begun = now - second / 100;
  world.dumps[0].entries.back().begun = now - second / 100;
  CHECK(findings(world) == Sentences{});
}

TEST_CASE("operations that a full ring has forgotten accuse nobody") {
  World world = world_of(2);
  enter(world, 0, 3, 1, 4);
  world.dumps[1].header.operation_count = 2 * record::entries_kept;
  for (Entry& each : world.dumps[1].entries) each.kind = record::kind_send;
  CHECK(findings(world) == Sentences{"In all_reduce(sum, f32, 8 elements) #3, rank 0 waits for "
                                     "rank 1 in step 4."});
}

TEST_CASE("a rank that is stopped or dead comes first") {
  World world = world_of(2);
  enter(world, 0, 3, 1, 5);
  world.dumps[1].life = Life::stopped;
  CHECK(verdict(world) ==
        Sentences{"Rank 1 (pid 101 on n1) is stopped by a signal or a debugger. Its last operation "
                  "was all_reduce(sum, f32, 8 elements) #2. Rank 0 waits for it in step 5 of "
                  "all_reduce(sum, f32, 8 elements) #3."});
  enter(world, 1, 3, record::nobody, 0);
  world.dumps[1].life = Life::gone;
  world.dumps[0].entries.back().state = State::failed;
  CHECK(verdict(world) ==
        Sentences{"Rank 1 (pid 101 on n1) ended without leaving the world while it ran "
                  "all_reduce(sum, f32, 8 elements) #3. Rank 0 waited for it in step 5 of "
                  "all_reduce(sum, f32, 8 elements) #3."});
}

TEST_CASE("whom a dead rank held up is told where nobody had come to wait for it") {
  World world = world_of(4);
  for (const std::uint32_t rank : {0U, 1U, 2U}) {
    enter(world, rank, 3, rank == 0 ? 1 : 0, 1).state = State::failed;
  }
  world.dumps[3].life = Life::gone;
  CHECK(findings(world)[0] ==
        "Rank 3 (pid 103 on n1) ended without leaving the world. Its last operation, "
        "all_reduce(sum, f32, 8 elements) #2, was done. Ranks 0 to 2 were in all_reduce(sum, f32, "
        "8 elements) #3, which it never entered.");
  enter(world, 3, 3, record::nobody, 0);
  CHECK(findings(world)[0] ==
        "Rank 3 (pid 103 on n1) ended without leaving the world while it ran all_reduce(sum, f32, "
        "8 elements) #3. Ranks 0 to 2 were in all_reduce(sum, f32, 8 elements) #3, which it "
        "entered, too.");
  world.dumps[3].life = Life::stopped;
  world.dumps[3].entries.pop_back();
  for (const std::uint32_t rank : {1U, 2U}) world.dumps[rank].entries.pop_back();
  world.dumps[0].entries.back().state = State::running;
  CHECK(findings(world)[0] ==
        "Rank 3 (pid 103 on n1) is stopped by a signal or a debugger. Its last operation was "
        "all_reduce(sum, f32, 8 elements) #2. Rank 0 is in all_reduce(sum, f32, 8 elements) #3, "
        "which it has not entered.");
}

TEST_CASE("ranks that died of an error are told behind the one that caused it") {
  World world = world_of(3);
  for (Dump& each : world.dumps) each.life = Life::gone;
  for (std::uint32_t rank : {0U, 1U}) world.dumps[rank].header.failure = {'o', 'h'};
  const Sentences said = findings(world);
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("Rank 2 (pid 102 on n1) ended without leaving the world.") == 0);
  CHECK(said[1] == "Ranks 0 and 1 ended after a failure had reached them.");
}

TEST_CASE("a rank that died when its operation had failed is no cause, either") {
  World world = world_of(3);
  world.dumps[0].life = Life::left;
  for (const std::uint32_t rank : {1U, 2U}) {
    enter(world, rank, 3, 0, 0).state = State::failed;
    world.dumps[rank].life = Life::gone;
  }
  const Sentences said = findings(world);
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("Rank 0 (pid 100 on n1) never entered") == 0);
  CHECK(said[1] == "Ranks 1 and 2 ended after a failure had reached them.");
}

TEST_CASE("of a rank on another host it is not known whether it runs") {
  World world = world_of(2);
  world.dumps[1].life = Life::unknown;
  CHECK(findings(world) == Sentences{"It is not known whether rank 1 still runs, because its "
                                     "records are a copy or belong to another host."});
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
  CHECK(said.back() ==
        "There are no records of rank 2 here: it may have ended, run on another host, or belong to "
        "another user. Rank 0 waits for rank 2 in step 4 of all_reduce(sum, f32, 8 elements) #3.");
}

TEST_CASE("a rank that waits elsewhere is late because of that") {
  World world = world_of(3);
  constexpr std::uint64_t part = std::uint64_t{5} << 32 | 1;
  for (std::uint32_t rank = 1; rank < 3; ++rank) {
    world.dumps[rank].header.groups[1] = {.id = part, .rank = rank - 1, .size = 2, .is_open = 1};
  }
  enter(world, 0, 3, 2, 4);
  enter(world, 1, 3, 2, 4);
  enter(world, 2, 1, 0, 7).communicator = part;
  const Sentences said = findings(world);
  REQUIRE(said.size() == 2);
  CHECK(said[0].find("Rank 2 (pid 102 on n1) has not entered all_reduce(sum, f32, 8 elements) #3, "
                     "which rank 0 called 2s ago. It has been in all_reduce(sum, f32, 8 elements) "
                     "#1 of the communicator of ranks 1 and 2 for 2s.") == 0);
  CHECK(
      said[1].find("Rank 1 (pid 101 on n1) has not entered all_reduce(sum, f32, 8 elements) #1 of "
                   "the communicator of ranks 1 and 2") == 0);
}

TEST_CASE("the parts of a split are judged apart, though they have one id") {
  World world = world_of(4);
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    const std::uint64_t part = std::uint64_t{5} << 32 | rank % 2;
    world.dumps[rank].header.groups[1] = {.id = part, .rank = rank / 2, .size = 2, .is_open = 1};
    enter(world, rank, 1, record::nobody, 0).communicator = part;
    if (rank % 2 == 0) world.dumps[rank].entries.back().tag = tag(ReduceOp::max);
  }
  CHECK(findings(world).empty());
  world.dumps[3].entries.pop_back();
  world.dumps[1].entries.back().peer = 1;
  const Sentences said = findings(world);
  REQUIRE(said.size() == 1);
  CHECK(
      said[0].find("Rank 3 (pid 103 on n1) has not entered all_reduce(sum, f32, 8 elements) #1 of "
                   "the communicator of ranks 1 and 3") == 0);
}

TEST_CASE("a message that is awaited is named with its tag") {
  World world = world_of(2);
  Entry& entry = enter(world, 0, 0, 1, 0);
  entry.kind = record::kind_receive;
  entry.tag = 7;
  entry.bytes = 64;
  CHECK(verdict(world) ==
        Sentences{"Rank 0 has been in recv(up to 64 bytes, tag 7) from rank 1 for 2s."});
}

TEST_CASE("all ranks that were told the same are named together") {
  World world = world_of(3);
  for (Dump& each : world.dumps) each.header.failure = {'o', 'h'};
  world.dumps[1].header.failure = {'n', 'o'};
  CHECK(verdict(world) == Sentences{"No recorded operation is under way.",
                                    "The program on rank 1 received this error: no",
                                    "The programs on ranks 0 and 2 received this error: oh"});
}

TEST_CASE("of what NCCL carries out, the rank that has not come is named after a second") {
  World world = world_of(3);
  const auto launch = [&](std::uint32_t rank, std::int64_t age) -> Entry& {
    Entry& entry = enter(world, rank, 7, record::nobody, 0);
    entry.communicator = record::offload_bit;
    entry.begun = now - age;
    return entry;
  };
  for (Dump& each : world.dumps) {
    each.header.groups[1] = {
        .id = record::offload_bit, .rank = each.rank(), .size = 3, .is_open = 1};
  }
  launch(0, second * 9 / 10);
  launch(2, second / 2);
  CHECK(verdict(world) == Sentences{"Operations are under way, and none of them has stalled."});
  for (Dump& each : world.dumps) each.now += second;
  CHECK(verdict(world) ==
        Sentences{"Rank 1 (pid 101 on n1) has not entered all_reduce(sum, f32, 8 elements) #7 by "
                  "NCCL, which rank 0 called 1.9s ago. Its last recorded operation, "
                  "all_reduce(sum, f32, 8 elements) #2, ended 4s ago. Ranks 0 and 2 are in "
                  "all_reduce(sum, f32, 8 elements) #7 by NCCL, which it has not entered."});

  SECTION("and once all have come, their devices are") {
    launch(1, 0);
    CHECK(
        verdict(world) ==
        Sentences{"The devices of ranks 0 to 2 have not finished all_reduce(sum, f32, 8 elements) "
                  "#7 by NCCL, which was called 1s ago."});
    CHECK(table(world)[1][4] == "all_reduce(sum, f32, 8 elements) #7 by NCCL");
    CHECK(table(world)[1][5] == "nccl");
  }
  SECTION("or its other call, which no message has shown") {
    launch(1, 0).tag = tag(ReduceOp::max);
    CHECK(
        verdict(world) ==
        Sentences{"Ranks 0 and 2 called all_reduce(sum, f32, 8 elements) #7 by NCCL; rank 1 called "
                  "all_reduce(max, f32, 8 elements) #7 by NCCL. All ranks must call the same "
                  "operations in the same order."});
  }
  SECTION("also once it has failed") {
    for (Dump& each : world.dumps) {
      if (each.rank() == 1) continue;
      each.entries.back().state = State::failed;
      each.entries.back().ended = now;
    }
    CHECK(
        verdict(world) ==
        Sentences{"Rank 1 (pid 101 on n1) never entered all_reduce(sum, f32, 8 elements) #7 by "
                  "NCCL, which rank 0 called 900ms before it failed. Its last recorded operation, "
                  "all_reduce(sum, f32, 8 elements) #2, ended 4s ago. Ranks 0 and 2 were in "
                  "all_reduce(sum, f32, 8 elements) #7 by NCCL, which it has not entered."});
  }
}

TEST_CASE("ranks in words") {
  CHECK(ranks_in_words({4}) == "rank 4");
  CHECK(ranks_in_words({4, 2}) == "ranks 2 and 4");
  CHECK(ranks_in_words({0, 1, 2, 5}) == "ranks 0 to 2 and 5");
  CHECK(ranks_in_words({0, 1, 3, 4, 5, 6, 9}) == "ranks 0, 1, 3 to 6 and 9");
}

}  // namespace hocket::trace
