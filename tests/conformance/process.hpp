// A process that a test starts and may kill.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace hocket::testing {

/// Killed and waited for at the latest when this goes.
class Process {
 public:
  /// This test program anew, with these arguments and this text to read.
  static Process of_this_program(const std::vector<std::string>& arguments,
                                 const std::string& input);

  Process(Process&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Process& operator=(Process&&) = delete;
  ~Process();

  void send(int signal) const;
  /// Its exit status, or minus the signal that ended it; nothing when it still runs.
  std::optional<int> wait(Duration timeout);

 private:
  explicit Process(int id) noexcept : id_(id) {}

  int id_ = -1;
};

}  // namespace hocket::testing
