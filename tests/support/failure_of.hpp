// The failure that a call of the C++ API ends with.
#pragma once

#include <functional>

#include "hocket/status.hpp"

namespace hocket::testing {

/// Success for none.
[[nodiscard]] inline Status failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.status();
  }
  return {};
}

}  // namespace hocket::testing
