#include "transports/shm/shm.hpp"

#include <cerrno>
#include <memory>
#include <span>

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/machine.hpp"
#include "transports/shm/transport.hpp"
#include "transports/shm/trial.hpp"

namespace hocket::shm {
namespace {

Status available(std::span<const Setting> /*settings*/) {
  if (own_machine().empty()) {
    return {StatusCode::unsupported, "this system does not say which machine it is"};
  }
  rlimit limit = {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    return Status(StatusCode::unsupported, "files of this process are limited in size")
        .with_hint("ulimit -f unlimited");
  }
  const Fd memory(::memfd_create("hocket-trial", MFD_CLOEXEC));
  if (!memory) {
    return Status(StatusCode::unsupported, "this system can't create a file without a name")
        .with_system_error(errno)
        .with_hint("raise the limit of open files: ulimit -n");
  }
  if (const int error = try_from_outside(memory.get()); error != 0) {
    return Status(StatusCode::unsupported, "other processes can't open what this one shares")
        .with_system_error(error)
        .with_hint(::prctl(PR_GET_DUMPABLE) == 1
                       ? "/proc may not be mounted, or a security module may deny it"
                       : "a program that changes its user, or calls prctl(PR_SET_DUMPABLE), is "
                         "hidden from others");
  }
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (process) return {};
  return Status(StatusCode::unsupported, "this system does not tell when a process ends")
      .with_system_error(errno)
      .with_hint("Linux 5.3 and later do");
}

/// What goes wrong here is no reason to fail where there are other transports.
Result<std::unique_ptr<Transport>> make(const TransportOptions& options) {
  auto made = ShmTransport::make(options);
  if (made.ok() || made.status().code() == StatusCode::unsupported) return made;
  return Status(StatusCode::unsupported, "shared memory can't be set up").caused_by(made.status());
}

}  // namespace

constinit const TransportKind kind = {
    .name = "shm",
    .summary = "memory that ranks of one host share",
    .available = available,
    .make = make,
};

}  // namespace hocket::shm
