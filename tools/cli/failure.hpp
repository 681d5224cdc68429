// How sub-commands fail.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "hocket/status.hpp"

#include "program/parser.hpp"

namespace hocket::cli {

/// Says why a command, such as "hocket sim", failed. Returns its exit status.
[[nodiscard]] inline int fail(std::string_view command, const Status& status) {
  fmt::print(stderr, "{}: {}\n", command, status.to_string());
  return program::exit_failure;
}

/// What is wrong with an option.
[[nodiscard]] inline Status refuse(std::string why) {
  return {StatusCode::invalid_argument, std::move(why)};
}

}  // namespace hocket::cli
