// How long things took.
#pragma once

#include "base/clock.hpp"

namespace hocket::testing {

class Stopwatch {
 public:
  [[nodiscard]] Duration elapsed() const { return monotonic_clock().now() - start_; }

 private:
  Instant start_ = monotonic_clock().now();
};

}  // namespace hocket::testing
