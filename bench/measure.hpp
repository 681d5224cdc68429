// Timing pieces of work against each other on a machine whose speed drifts.
#pragma once

#include <functional>
#include <vector>

#include "base/clock.hpp"

namespace hocket::bench {

[[nodiscard]] constexpr double us(double seconds) noexcept { return seconds * 1e6; }

struct MeasureOptions {
  int rounds = 5;
  Duration batch = std::chrono::microseconds(400);  // the shortest time that is measured at once
};

[[nodiscard]] double median(std::vector<double> values);

/// Seconds a call, over the rounds.
struct Measured {
  double median = 0;
  double best = 0;
};

/// Of each work. A round measures every work once, in turn, so that a slow moment hits all of them.
[[nodiscard]] std::vector<Measured> measure(const std::vector<std::function<void()>>& works,
                                            const MeasureOptions& options);

}  // namespace hocket::bench
