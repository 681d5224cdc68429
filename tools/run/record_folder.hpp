// The folder in which the ranks of a job keep their records (lib/record), so that the launcher can
// say what was wrong when one of them has failed.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"

namespace hocket::run {

/// A temporary folder, which is removed with this object, unless HOCKET_TRACE names another one or
/// is off. If it can't be made, there are no findings.
class RecordFolder {
 public:
  /// `environment`: of the ranks.
  RecordFolder(const std::vector<std::string>& environment, int ranks);
  RecordFolder(const RecordFolder&) = delete;
  RecordFolder& operator=(const RecordFolder&) = delete;
  ~RecordFolder();

  /// What the ranks need in their environment.
  [[nodiscard]] std::vector<std::string> variables() const;
  /// Records from before this call are ignored from now on.
  void begin_attempt() noexcept { begun_ = universal_time(); }
  /// Sentences about the last world of this attempt: who has died, is late, or called something
  /// else.
  [[nodiscard]] std::vector<std::string> findings() const noexcept;

 private:
  [[nodiscard]] std::vector<std::string> read() const;

  std::string folder_;
  bool is_ours_ = false;
  std::int64_t begun_ = 0;  // nanoseconds since 1970
};

}  // namespace hocket::run
