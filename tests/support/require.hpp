// Results that must be there, and how long things took.
#pragma once

#include <utility>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "support/catch.hpp"
#include "support/stopwatch.hpp"

namespace hocket::testing {

/// The value, or the end of the test with the reason.
template <class T>
T require(Result<T> result) {
  INFO(result.status().to_string());
  REQUIRE(result.ok());
  return std::move(*result);
}
inline void require(const Status& status) {
  INFO(status.to_string());
  REQUIRE(status.ok());
}

// A machine under load may take this long for what should happen at once.
inline constexpr Duration soon = std::chrono::seconds(20);

}  // namespace hocket::testing
