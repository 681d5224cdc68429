#include "base/fd.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

namespace hocket {

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
