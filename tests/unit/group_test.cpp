// Ranks of a group, and of the world, in the failures of both.
#include "engine/group.hpp"

#include <array>
#include <cstdint>

#include "support/catch.hpp"

namespace hocket::testing {
namespace {

Status lost(int peer) { return Status(StatusCode::peer_lost, "gone").with_peer(peer); }

TEST_CASE("failures name ranks of the world to the transport, and of the group to its user") {
  const std::array<std::uint32_t, 3> members = {7, 2, 5};
  engine::Group group{.members = members};
  CHECK(group.in_world(lost(2)).peer() == 5);
  CHECK(group.in_world(Status(StatusCode::aborted, "")).peer() == -1);
  CHECK(group.in_group(lost(7), 1, 2).peer() == 0);
  // Who is no member, or not named, is the one that it was told by.
  CHECK(group.in_group(lost(3), 1, 2).peer() == 2);
  CHECK(group.in_group(Status(StatusCode::timeout, ""), 1, 2).peer() == 2);
  engine::Group world;
  CHECK(world.in_world(lost(2)).peer() == 2);
  CHECK(world.in_group(lost(4), 1, 2).peer() == 4);
}

TEST_CASE("what a rank is accused of is passed on as it came") {
  const std::array<std::uint32_t, 3> members = {7, 2, 5};
  engine::Group group{.members = members};
  const Status told = group.in_group(lost(2), 1, 0);  // by rank 0: of rank 1, which this is
  CHECK(told.peer() == 0);
  CHECK(group.in_world(told).peer() == 2);
}

}  // namespace
}  // namespace hocket::testing
