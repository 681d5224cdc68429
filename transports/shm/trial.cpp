#include "transports/shm/trial.hpp"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hocket::shm {
namespace {

struct Attempt {
  std::array<char, 64> path = {};
  int error = ECHILD;  // until the other process has tried it
};

/// Whether /proc shows this process, and not one of another namespace that has its number.
bool is_ours(const Attempt& attempt, int descriptor) noexcept {
  struct stat there = {};
  struct stat here = {};
  return ::stat(attempt.path.data(), &there) == 0 && ::fstat(descriptor, &here) == 0 &&
         there.st_dev == here.st_dev && there.st_ino == here.st_ino;
}

/// In the other process, but in memory of this one, which waits until that has ended.
int open_it(void* argument) {
  auto& attempt = *static_cast<Attempt*>(argument);
  const long opened =
      ::syscall(SYS_openat, AT_FDCWD, attempt.path.data(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  attempt.error = opened < 0 ? errno : 0;
  ::syscall(SYS_exit, attempt.error);
  return 0;
}

}  // namespace

int try_from_outside(int descriptor) noexcept {
  Attempt attempt;
  static_cast<void>(std::snprintf(attempt.path.data(), attempt.path.size(), "/proc/%d/fd/%d",
                                  static_cast<int>(::getpid()), descriptor));
  if (!is_ours(attempt, descriptor)) return ENOENT;
#ifdef __SANITIZE_THREAD__  // which takes every clone() for a fork()
  return ::prctl(PR_GET_DUMPABLE) == 1 ? 0 : EACCES;
#endif
  alignas(16) std::array<std::byte, 16384> stack;
  // Else a handler could run in the other process, on this stack.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // Its descriptors are copies, so that what it opens is closed at its end.
  const pid_t other =
      ::clone(open_it, stack.data() + stack.size(), CLONE_VM | CLONE_VFORK, &attempt);
  int error = errno;
  if (other >= 0) {
    int status = 0;
    pid_t ended = 0;
    do {
      ended = ::waitpid(other, &status, static_cast<int>(__WCLONE));
    } while (ended < 0 && errno == EINTR);
    // Where clone() is only a fork(), as under valgrind, `attempt` is another one there.
    error = ended == other && WIFEXITED(status) ? WEXITSTATUS(status) : attempt.error;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

}  // namespace hocket::shm
