// Which lanes are over, kept as ranges.
#include "transports/common/lane_set.hpp"

#include <cstdint>
#include <set>

#include "base/limits.hpp"
#include "base/rng.hpp"
#include "support/catch.hpp"

using namespace hocket;
using namespace hocket::common;

TEST_CASE("lanes that are over are remembered as ranges, whatever their order") {
  SeededRandom random(1);
  for (int run = 0; run < 200; ++run) {
    LaneSet lanes;
    std::set<std::uint64_t> wanted;
    for (std::uint64_t i = random.between(1, 40); i > 0; --i) {
      const std::uint64_t first = random.below(100);
      const std::uint64_t last = first + random.below(8);
      lanes.add(first, last);
      for (std::uint64_t lane = first; lane <= last; ++lane) wanted.insert(lane);
    }
    std::size_t ranges = 0;
    for (std::uint64_t lane = 0; lane < 110; ++lane) {
      REQUIRE(lanes.contains(lane) == wanted.contains(lane));
      if (wanted.contains(lane) && !wanted.contains(lane + 1)) ++ranges;
    }
    REQUIRE(lanes.ranges().size() == ranges);
  }
}

TEST_CASE("lanes in a row take one range, and of others the oldest are forgotten") {
  LaneSet lanes;
  for (std::uint64_t id = 1; id < 10'000; ++id) lanes.add(id << 8, (id << 8) + 255);
  CHECK(lanes.ranges().size() == 1);
  for (std::uint64_t id = 10'001; id < 20'000; id += 2) lanes.add(id << 8, (id << 8) + 255);
  CHECK(lanes.ranges().size() == limits::closed_lane_ranges_max);
  CHECK(lanes.contains(19'999 << 8));
  CHECK_FALSE(lanes.contains(19'998 << 8));
  CHECK_FALSE(lanes.contains(5 << 8));
}

TEST_CASE("of too many reasons the oldest are forgotten, and no lane") {
  LaneSet lanes;
  const std::uint64_t count = 3 * limits::closed_lane_ranges_max;
  for (std::uint64_t id = 1; id < count; ++id) lanes.add(id << 8, (id << 8) + 255, id);
  CHECK(lanes.ranges().size() == limits::closed_lane_ranges_max);
  for (std::uint64_t id = 1; id < count; ++id) REQUIRE(lanes.contains(id << 8));
  CHECK(lanes.find((count - 1) << 8) == count - 1);
  CHECK(lanes.find(1 << 8) == 0U);
  CHECK_FALSE(lanes.contains(255));
}

TEST_CASE("lanes keep the reason for which they are over") {
  LaneSet lanes;
  lanes.add(0, 9, 1);
  lanes.add(10, 19, 1);
  lanes.add(20, 29, 2);
  CHECK(lanes.ranges().size() == 2);
  CHECK(lanes.find(19) == 1U);
  CHECK(lanes.find(20) == 2U);
  CHECK_FALSE(lanes.find(30).has_value());
  lanes.add(22, 25, 3);  // was over before
  CHECK(lanes.find(22) == 2U);
  lanes.add(30, 39, 1);
  CHECK(lanes.ranges().size() == 3);
  CHECK(lanes.find(30) == 1U);
  lanes.add(5, 15, 4);  // was over before, for another reason
  CHECK(lanes.find(5) == 1U);
  lanes.add(35, 45, 5);
  CHECK(lanes.find(30) == 5U);
}
