#include "transports/shm/shm.hpp"

#include <cerrno>
#include <memory>
#include <span>

#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.hpp"
#include "base/fd.hpp"
#include "transports/shm/transport.hpp"

namespace hocket::shm {
namespace {

/// By itself it is off: it is new.
Status available(std::span<const Setting> settings) {
  const Config config(settings);
  if (config.get(variables::transport).find("shm") == std::string::npos) {
    return Status(StatusCode::unsupported, "it is new, and used only where it is asked for")
        .with_hint("HOCKET_TRANSPORT=shm,tcp asks for it");
  }
  if (::access("/proc/self/fd", X_OK) != 0) {
    return Status(StatusCode::unsupported, "this system does not show a process its descriptors")
        .with_system_error(errno)
        .with_hint("mount /proc");
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
