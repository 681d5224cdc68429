// Where the ranks of a job keep their records (lib/record), so that the launcher can say what was
// wrong when one of them has failed.
#pragma once

#include <string>
#include <vector>

namespace hocket::run {

/// A folder that is removed with this. Where it can't be made, or the user keeps the records
/// elsewhere, there is none, and nothing is found.
class Records {
 public:
  /// `environment`: of the ranks.
  explicit Records(const std::vector<std::string>& environment);
  Records(const Records&) = delete;
  Records& operator=(const Records&) = delete;
  ~Records();

  /// What the ranks need in their environment.
  [[nodiscard]] std::vector<std::string> variables() const;
  /// Sentences about the last world: who has died, is late, or called something else.
  [[nodiscard]] std::vector<std::string> findings() const;

 private:
  std::string folder_;
  bool is_ours_ = false;
};

}  // namespace hocket::run
