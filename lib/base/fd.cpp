#include "base/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <utility>

#include <fcntl.h>
#include <pthread.h>

#include <fmt/format.h>

namespace hocket {
namespace {

/// All that a child must not get.
struct Unforked {
  std::mutex mutex;  // held while the process forks, so that a child finds all of them
  std::set<Fd*> files;
};

Unforked& unforked() noexcept {
  // Never destroyed: there may be a fork until the end. And made without memory of the heap.
  alignas(Unforked) static std::byte place[sizeof(Unforked)];
  static Unforked& instance = *new (place) Unforked;
  return instance;
}

void before_fork() noexcept { unforked().mutex.lock(); }
void after_fork() noexcept { unforked().mutex.unlock(); }

void in_child() noexcept {
  for (Fd* const file : unforked().files) file->reset();
  after_fork();
}

/// Whether children find the files closed from now on; otherwise errno.
bool watch_forks() noexcept {
  static const int error = pthread_atfork(before_fork, after_fork, in_child);
  errno = error;
  return error == 0;
}

}  // namespace

UnforkedFd UnforkedFd::open(const char* path, int flags, mode_t mode) {
  UnforkedFd made;
  if (!watch_forks()) return made;
  auto file = std::make_unique<Fd>();
  const std::lock_guard lock(unforked().mutex);
  unforked().files.insert(file.get());
  made.file_ = std::move(file);
  made.file_->reset(::open(path, flags, mode));
  return made;
}

UnforkedFd::~UnforkedFd() {
  if (file_ == nullptr) return;
  const std::lock_guard lock(unforked().mutex);
  unforked().files.erase(file_.get());
  file_.reset();
}

rlimit raise_open_files_max() noexcept {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit most = {before.rlim_max, before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &most);
  return before;
}

Status allow_open_files(std::uint64_t count) {
  constexpr std::uint64_t others = 64;
  const rlim_t wanted = count + others;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return {};
  limit.rlim_cur = std::min(limit.rlim_max, wanted);
  if (::setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur == wanted) return {};
  return Status(StatusCode::limit_exceeded,
                fmt::format("{} open files are needed, and this process may have {}", wanted,
                            limit.rlim_cur))
      .with_hint("raise the hard limit: `ulimit -Hn`, or LimitNOFILE= of the service");
}

}  // namespace hocket
