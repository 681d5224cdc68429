#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "support/catch.hpp"
#include "transports/shm/trial.hpp"

using hocket::Fd;
using hocket::shm::try_from_outside;

namespace {

/// In a process of its own, that hides itself from others of its user: the first step that goes
/// wrong, or 0.
int hide_and_try() {
  const Fd memory(::memfd_create("hocket-test", MFD_CLOEXEC));
  if (try_from_outside(memory.get()) != 0) return 1;
  const bool is_root = ::geteuid() == 0;
  if (is_root && ::setresuid(65534, 65534, 65534) != 0) return 2;  // root sees all
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return 3;
  if (try_from_outside(memory.get()) == 0) return 4;
  if (::prctl(PR_SET_DUMPABLE, 1) != 0) return 5;
  // What root made stays root's.
  const Fd own(::memfd_create("hocket-test", MFD_CLOEXEC));
  return try_from_outside(own.get()) == 0 ? 0 : 6;
}

}  // namespace

TEST_CASE("a process that is hidden from others finds that out") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(hide_and_try());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
}

TEST_CASE("the trial leaves no child and no descriptor behind") {
  const Fd memory(::memfd_create("hocket-test", MFD_CLOEXEC));
  const int next = Fd(::dup(memory.get())).get();
  for (int i = 0; i < 100; ++i) REQUIRE(try_from_outside(memory.get()) == 0);
  REQUIRE(Fd(::dup(memory.get())).get() == next);
  REQUIRE(::waitpid(-1, nullptr, WNOHANG | static_cast<int>(__WALL)) == -1);
  REQUIRE(try_from_outside(next) != 0);  // there is none of that number
}
