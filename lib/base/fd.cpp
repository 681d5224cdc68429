#include "base/fd.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <pthread.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/log.hpp"

namespace hocket {
namespace {

constexpr std::size_t word_bits = 64;

/// The descriptors that a child closes.
struct Unforked {
  std::mutex mutex;                  // held while the process forks
  std::vector<std::uint64_t> words;  // one bit for each descriptor
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
  std::vector<std::uint64_t>& words = unforked().words;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (; words[i] != 0; words[i] &= words[i] - 1) {
      ::close(static_cast<int>(i * word_bits) + std::countr_zero(words[i]));
    }
  }
  fork_detail::generation.fetch_add(1, std::memory_order_relaxed);
  log::renew_lock();
  after_fork();
}

struct Abandoned {
  const void* object;
  const Abandoned* next;
};

}  // namespace

bool watch_forks() noexcept {
  static const int error = pthread_atfork(before_fork, after_fork, in_child);
  if (error != 0) errno = error;
  return error == 0;
}

Status inherited_status(const std::string& what) {
  return Status(StatusCode::invalid_argument,
                fmt::format("{} does not survive a fork: this process, pid {}, is a child of the "
                            "one that made it",
                            what, ::getpid()))
      .with_hint(
          "use it in the parent only, or let the child join a world of its own; start workers by "
          "spawn (fork and exec) rather than by fork alone, or before the parent joins");
}

void abandon(const void* inherited) noexcept {
  static std::atomic<const Abandoned*> all = nullptr;  // where leak checkers find them
  auto* const last = new (std::nothrow) Abandoned{inherited, all.load()};
  while (last != nullptr && !all.compare_exchange_weak(last->next, last)) {
  }
}

ForkPause::ForkPause() noexcept { unforked().mutex.lock(); }
ForkPause::~ForkPause() { unforked().mutex.unlock(); }

bool ForkPause::add(int descriptor) noexcept try {
  const auto place = static_cast<std::size_t>(descriptor);
  std::vector<std::uint64_t>& words = unforked().words;
  if (words.size() <= place / word_bits) words.resize(place / word_bits + 1);
  words[place / word_bits] |= std::uint64_t{1} << place % word_bits;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

void ForkPause::remove(int descriptor) noexcept {
  const auto place = static_cast<std::size_t>(descriptor);
  unforked().words[place / word_bits] &= ~(std::uint64_t{1} << place % word_bits);
}

void Fd::adopt(int descriptor, ForkPause& pause) noexcept {
  if (descriptor < 0) return;
  if (!pause.add(descriptor)) {
    ::close(descriptor);
    errno = ENOMEM;
    return;
  }
  descriptor_ = descriptor;
  generation_ = process_generation();
}

int Fd::release() noexcept {
  if (generation_ != 0 && !is_inherited()) ForkPause().remove(descriptor_);
  generation_ = 0;
  return std::exchange(descriptor_, -1);
}

void Fd::close() const noexcept {
  if (is_inherited()) return;
  if (generation_ == 0) {
    ::close(descriptor_);
    return;
  }
  ForkPause pause;
  pause.remove(descriptor_);
  ::close(descriptor_);
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
