// What belongs to one process: file descriptors with an owner, and objects that a child made by
// fork() must not use.
//
// The child gets a copy of each object of this library, but none of the threads that may hold their
// locks, and must not touch what the parent shares with other processes: sockets, locks on files, a
// server. So the child closes the library's descriptors as soon as it runs, and every object knows
// whether it was made by this process.
//
// This works for fork(). vfork() and posix_spawn() must execute another program, in which O_CLOEXEC
// closes the descriptors. A process made by the system call clone() alone is not noticed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include <sys/resource.h>

#include "hocket/status.hpp"

namespace hocket {

namespace fork_detail {
inline std::atomic<std::uint32_t> generation = 1;
}

/// Grows by 1 in each child; never 0.
[[nodiscard]] inline std::uint32_t process_generation() noexcept {
  return fork_detail::generation.load(std::memory_order_relaxed);
}

/// Lets this process notice forks from now on. On failure false, and errno is set.
bool watch_forks() noexcept;

/// The process that made an object: a member of whatever a child must not use.
class Origin {
 public:
  Origin() noexcept { watch_forks(); }
  [[nodiscard]] bool is_inherited() const noexcept { return generation_ != process_generation(); }

 private:
  std::uint32_t generation_ = process_generation();
};

/// Why `what`, such as "a communicator", can't be used by a child.
[[nodiscard]] Status inherited_status(const std::string& what);

/// Keeps an object that a child inherited for ever: to destroy it could wait for threads that do
/// not exist here.
void abandon(const void* inherited) noexcept;

template <class T>
void abandon(std::unique_ptr<T>& inherited) noexcept {
  if (inherited != nullptr) abandon(static_cast<const void*>(inherited.release()));
}

/// No thread forks while another one has this. Hold it for a moment only, and never twice.
class ForkPause {
 public:
  ForkPause() noexcept;
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;
  ~ForkPause();

  /// The child closes this descriptor as soon as it runs. False when there is no memory for it.
  bool add(int descriptor) noexcept;
  void remove(int descriptor) noexcept;
};

/// What a process has once, and each child made by fork() has anew: its parent's may be locked by
/// threads that do not exist in the child.
/// Made at the first use, and never destroyed. Any thread.
template <class T>
class ProcessWide {
 public:
  [[nodiscard]] T& get() {
    Holder* found = current_;
    while (found == nullptr || found->origin.is_inherited()) {
      auto fresh = std::make_unique<Holder>();
      if (!current_.compare_exchange_strong(found, fresh.get())) continue;
      if (found != nullptr) abandon(static_cast<const void*>(found));
      found = fresh.release();
    }
    return found->object;
  }

 private:
  struct Holder {
    const Origin origin = {};
    T object = {};
  };

  std::atomic<Holder*> current_ = nullptr;
};

/// Closes its descriptor; -1 for none.
///
/// One that open_unforked() made is of this process alone: a child made by fork() closes its copy
/// as soon as it runs. There the object still has the number, and never closes it, as it
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
