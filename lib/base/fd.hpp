// File descriptors with an owner, and how many there may be.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include "hocket/status.hpp"

namespace hocket {

/// Closes its descriptor; -1 for none.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int descriptor) noexcept : descriptor_(descriptor) {}
  Fd(Fd&& other) noexcept : descriptor_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  [[nodiscard]] int release() noexcept { return std::exchange(descriptor_, -1); }

  void reset(int descriptor = -1) noexcept {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = descriptor;
  }

 private:
  int descriptor_ = -1;
};

/// An open file that a child made by fork() does not keep: it closes it as soon as it runs, and has
/// -1. For a file whose locks, which belong to all who have it open, must end with this process.
///
/// Only fork() is known; others that make a process (posix_spawn, vfork) must run another program
/// in it, which has O_CLOEXEC to close the file.
class UnforkedFd {
 public:
  UnforkedFd() noexcept = default;
  UnforkedFd(UnforkedFd&&) noexcept = default;
  UnforkedFd& operator=(UnforkedFd&& other) noexcept {
    file_.swap(other.file_);
    return *this;
  }
  ~UnforkedFd();

  /// None, and errno, when it fails. A fork waits until the file is open.
  [[nodiscard]] static UnforkedFd open(const char* path, int flags, mode_t mode);

  [[nodiscard]] int get() const noexcept { return file_ == nullptr ? -1 : file_->get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return get() >= 0; }

 private:
  std::unique_ptr<Fd> file_;  // where a child finds it
};

/// Lets this process have as many files open as the system does. Gives the limits before.
rlimit raise_open_files_max() noexcept;

/// Raises the soft limit, if need be, so that there is room for that many files beside a few
/// others. Fails with limit_exceeded when the hard limit forbids it; the soft one is as high as it
/// can be then.
Status allow_open_files(std::uint64_t count);

}  // namespace hocket
