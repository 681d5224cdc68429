// File descriptors with an owner, and how many there may be.
#pragma once

#include <cstdint>
#include <utility>

#include <sys/resource.h>
#include <sys/types.h>

#include "hocket/status.hpp"

#include "base/fork.hpp"

namespace hocket {

/// Closes its descriptor; -1 for none.
///
/// One that open_unforked() made is of this process alone: a child made by fork() closes its copy
/// as soon as it runs (fork.hpp). There the object still has the number, and never closes it, as it
/// may by then be that of another file.
class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int descriptor) noexcept : descriptor_(descriptor) {}
  Fd(Fd&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), generation_(other.generation_) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd taken(std::move(other));
    std::swap(descriptor_, taken.descriptor_);
    std::swap(generation_, taken.generation_);
    return *this;
  }
  ~Fd() { reset(); }

  /// What `open`, a system call such as ::socket, gives; none, and errno, when it fails. Forks wait
  /// for it, so that no child keeps the descriptor.
  template <class Open>
  [[nodiscard]] static Fd open_unforked(const Open& open) noexcept {
    Fd made;
    if (!watch_forks()) return made;
    ForkPause pause;
    made.adopt(open(), pause);
    return made;
  }

  [[nodiscard]] int get() const noexcept { return descriptor_; }
  [[nodiscard]] explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// Whether this is a child, which has closed it.
  [[nodiscard]] bool is_inherited() const noexcept {
    return generation_ != 0 && generation_ != process_generation();
  }

  /// From then on nobody owns it, and children keep it.
  [[nodiscard]] int release() noexcept;

  void reset(int descriptor = -1) noexcept {
    if (descriptor_ >= 0) close();
    descriptor_ = descriptor;
    generation_ = 0;
  }

 private:
  void adopt(int descriptor, ForkPause& pause) noexcept;
  void close() const noexcept;

  int descriptor_ = -1;
  std::uint32_t generation_ = 0;  // of the process that has it alone; 0: children keep theirs
};

/// Lets this process have as many files open as the system does. Gives the limits before.
rlimit raise_open_files_max() noexcept;

/// Raises the soft limit, if need be, so that there is room for that many files beside a few
/// others. Fails with limit_exceeded when the hard limit forbids it; the soft one is as high as it
/// can be then.
Status allow_open_files(std::uint64_t count);

}  // namespace hocket
