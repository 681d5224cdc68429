// What fork() does to the objects of this library. The child gets a copy of each of them, but none
// of the threads that may hold their locks, and must not touch what the parent shares with other
// processes: sockets, locks on files, a server. So the child closes the library's descriptors as
// soon as it runs, and every object knows whether it was made by this process.
//
// This works for fork(). vfork() and posix_spawn() must execute another program, in which O_CLOEXEC
// closes the descriptors. A process made by the system call clone() alone is not noticed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

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

}  // namespace hocket
