// The failure that a call of the C++ API ends with.
#pragma once

#include <functional>
#include <string>
#include <string_view>

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

/// Whether the story of the failure has these words.
[[nodiscard]] inline bool says(const Status& status, std::string_view words) {
  return status.to_string().find(words) != std::string::npos;
}

}  // namespace hocket::testing
