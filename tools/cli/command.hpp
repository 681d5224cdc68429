// A sub-command of `hocket`. To add one: a file with its Command, and a line in main.cpp.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include <CLI/CLI.hpp>

namespace hocket::cli {

/// Exit statuses, the same for every sub-command.
inline constexpr int exit_success = 0;
inline constexpr int exit_failure = 1;
inline constexpr int exit_usage = 2;  // the command line is wrong

struct Command {
  CLI::App* parser = nullptr;  // the program's, which owns it
  std::function<int()> run;    // called when the parser was chosen; returns the exit status
  /// Where there is one: takes the words at the end that are not for the parser, and returns how
  /// many are.
  std::function<std::size_t(std::span<char* const> words)> leave_words = {};
};

}  // namespace hocket::cli
