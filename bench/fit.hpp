// The numbers of a network from how long algorithms took on it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "choose/network.hpp"
#include "plan/catalog.hpp"
#include "plan/problem.hpp"

namespace hocket::bench {

struct Timed {
  const plan::Algorithm* algorithm = nullptr;
  plan::Problem problem = {};  // its pieces: as many as the ranks had
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// What each should take: by the estimate (choose/cost.hpp), or, where ranks share processors and
/// are not too many, by the simulator, as estimates don't know who waits for whom there.
[[nodiscard]] std::vector<double> foretold(const choose::Network& network,
                                           std::span<const Timed> timed);

/// Those with which what is foretold comes closest to what was measured, in proportion, from
/// `start` on. What was fastest counts most. Only those change that the measurements say something
/// of: inside hosts where ranks share one, between hosts where they do not.
[[nodiscard]] choose::Network fit(const choose::Network& start, std::span<const Timed> measured);

/// The mean error of what is foretold, weighted as in fit(): 0.2 says that it is wrong by about 20
/// %.
[[nodiscard]] double error_of(const choose::Network& network, std::span<const Timed> measured);

}  // namespace hocket::bench
