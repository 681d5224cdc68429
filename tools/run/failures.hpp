// The ranks that failed in the same moment. The failure of one makes others fail, and their ends
// need not be seen in order: so they are looked at together.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "run/node.hpp"

namespace hocket::run {

struct Failure {
  RankEnd end = {};
  std::string host = {};
  std::string last_lines = {};  // of its stderr
  Instant seen = {};
};

class Failures {
 public:
  void add(Failure failure);

  [[nodiscard]] bool empty() const noexcept { return failures_.empty(); }
  /// Of the first that crashed; where none did, of the first that was seen.
  [[nodiscard]] int status() const { return failures_.front().end.status; }
  /// What there is to say of them, without the end of the last line.
  [[nodiscard]] std::string story() const;

 private:
  std::vector<Failure> failures_;  // the likely cause comes first
};

}  // namespace hocket::run
