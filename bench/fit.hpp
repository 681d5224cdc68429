// The numbers of a network from how long algorithms took on it.
#pragma once

#include <cstdint>
#include <span>

#include "plan/catalog.hpp"
#include "plan/problem.hpp"
#include "sim/network.hpp"

namespace hocket::bench {

struct Timed {
  const plan::Algorithm* algorithm = nullptr;
  plan::Problem problem = {};
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// Those with which the estimates (sim/cost.hpp) come closest to what was measured, in proportion,
/// from `start` on. Only those change that the measurements say something of: inside hosts where
/// ranks share one, between hosts where they do not.
[[nodiscard]] sim::Network fit(const sim::Network& start, std::span<const Timed> measured);

/// The mean error of the estimates: 0.2 says that they are wrong by about 20 %.
[[nodiscard]] double error_of(const sim::Network& network, std::span<const Timed> measured);

}  // namespace hocket::bench
