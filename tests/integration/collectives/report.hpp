// What a rank of a test found to be wrong.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>

namespace hocket::testing {

/// Any thread.
class Report {
 public:
  /// A line for each failure; nothing for an empty text.
  void add(const std::string& failure) {
    if (failure.empty()) return;
    const std::lock_guard lock(mutex_);
    if (++failures_ > shown_max) return;
    std::printf("FAILED %s\n", failure.c_str());
    std::fflush(stdout);
  }
  void expect(bool holds, const std::string& what) { add(holds ? "" : what); }

  [[nodiscard]] int status() const { return failures_ == 0 ? 0 : 1; }

 private:
  static constexpr int shown_max = 20;

  std::mutex mutex_;
  int failures_ = 0;
};

}  // namespace hocket::testing
