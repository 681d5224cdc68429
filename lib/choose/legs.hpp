// What an algorithm does as a few legs, one after the other: how many of its messages stay inside a
// host, and how many go between hosts. All that the cost formulas know of who talks to whom.
#pragma once

#include <array>
#include <cstdint>

#include "choose/network.hpp"
#include "plan/catalog.hpp"
#include "plan/problem.hpp"

namespace hocket::choose {

/// Messages, and blocks, on the longest way through a leg.
struct Way {
  double hops = 0;      // that wait for the one before
  double blocks = 0;    // one after the other
  double streamed = 0;  // more of them, which wait for nothing: only what is slowest counts
};

struct Leg {
  Way inside = {};
  Way between = {};
  double block_bytes = 0;
  double crowd = 1;         // ranks that send through a NIC at once
  double reduced = 0;       // part of the blocks that is reduced where it comes
  bool is_in_step = false;  // the slowest link sets the pace of all
  bool is_serial = false;   // a message is not on its way while the one before it is reduced
};

struct Legs {
  std::array<Leg, 3> legs = {};
  std::uint32_t count = 0;
  double copied_bytes = 0;  // while nothing else goes on
};

/// Of a world of at least two.
[[nodiscard]] Legs legs_of(const plan::Algorithm& algorithm, const plan::Problem& problem,
                           double bytes, const Network& network);

/// Whether messages go one way at a time, so that a rank works at one end of each.
[[nodiscard]] bool is_one_way(const plan::Algorithm& algorithm) noexcept;

/// Of the vector, the part that the rank must receive that must receive most.
[[nodiscard]] double least_part(plan::Operation operation, std::uint32_t size) noexcept;

}  // namespace hocket::choose
