#include "transports/shm/shm.hpp"

#include <cerrno>
#include <memory>
#include <span>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.hpp"
#include "base/fd.hpp"
#include "transports/shm/transport.hpp"

namespace hocket::shm {
namespace {

/// Off by default: it is new.
Status available(std::span<const Setting> settings) {
  const Config config(settings);
  if (config.get(variables::transport).find("shm") == std::string::npos) {
    return Status(StatusCode::unsupported, "shm is off by default")
        .with_hint("HOCKET_TRANSPORT=shm,tcp turns it on");
  }
  if (::access("/proc/self/fd", X_OK) != 0) {
    return Status(StatusCode::unsupported, "this system does not show a process its descriptors")
        .with_system_error(errno)
        .with_hint("mount /proc");
  }
  if (::prctl(PR_GET_DUMPABLE) != 1) {
    return Status(StatusCode::unsupported, "no other process may look at this one")
        .with_hint("a program that changes its user, or calls prctl(PR_SET_DUMPABLE), is so");
  }
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  if (process) return {};
  return Status(StatusCode::unsupported, "this system does not tell when a process ends")
      .with_system_error(errno)
      .with_hint("Linux 5.3 and later do");
}

}  // namespace

constinit const TransportKind kind = {
    .name = "shm",
    .summary = "memory that ranks of one host share",
    .available = available,
    .make = ShmTransport::make,
};

}  // namespace hocket::shm
