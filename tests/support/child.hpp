// A process that goes on with what the test has.
#pragma once

#include <csignal>
#include <exception>
#include <stdexcept>

#include <sys/wait.h>
#include <unistd.h>

namespace hocket::testing {

/// Made by fork(); killed and waited for at the latest when this goes. What it does must not use
/// Catch, and tells whether all was well.
class Child {
 public:
  template <class Work>
  explicit Child(Work work) : id_(fork()) {
    if (id_ < 0) throw std::runtime_error("fork");
    if (id_ == 0) _exit(is_well(work) ? 0 : 1);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  void end() {
    if (id_ < 0) return;
    kill(id_, SIGKILL);
    ended_well();
  }

  /// When it has ended by itself.
  bool ended_well() {
    int status = 0;
    waitpid(id_, &status, 0);
    id_ = -1;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

 private:
  template <class Work>
  static bool is_well(Work& work) noexcept try {
    return work();
  } catch (const std::exception&) {
    return false;
  }

  pid_t id_ = -1;
};

}  // namespace hocket::testing
