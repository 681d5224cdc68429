#include "base/open_files.hpp"

#include <algorithm>
#include <cerrno>

#include <sys/resource.h>

#include <fmt/format.h>

namespace hocket {

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
