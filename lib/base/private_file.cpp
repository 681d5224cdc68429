#include "base/private_file.hpp"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "base/limits.hpp"

namespace hocket {
namespace {

Status failed(std::string what) {
  const int error = errno;
  const StatusCode code = error == ENOENT ? StatusCode::not_found : StatusCode::system_error;
  return Status(code, std::move(what)).with_system_error(error);
}

Status check_owner(const std::string& path, const struct stat& about, mode_t forbidden) {
  if (about.st_uid != geteuid() && about.st_uid != 0) {
    return {StatusCode::permission_denied,
            fmt::format("{} belongs to user {}, not to us ({})", path, about.st_uid, geteuid())};
  }
  if ((about.st_mode & forbidden) != 0) {
    return Status(
               StatusCode::permission_denied,
               fmt::format("{} is open to other users (mode {:03o})", path, about.st_mode & 0777))
        .with_hint(fmt::format("chmod go= {}", path));
  }
  return {};
}

}  // namespace

Result<std::string> read_private_file(const std::string& path) {
  const Fd file =
      Fd::open_unforked([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); });
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) return failed(fmt::format("can't open {}", path));
  if (!S_ISREG(about.st_mode)) {
    return Status(StatusCode::invalid_argument, fmt::format("{} is not a file", path));
  }
  if (Status status = check_owner(path, about, S_IRWXG | S_IRWXO); !status.ok()) return status;
  std::string content(limits::private_file_bytes_max + 1, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t count = ::read(file.get(), content.data() + size, content.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed(fmt::format("can't read {}", path));
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  if (size > limits::private_file_bytes_max) {
    return Status(StatusCode::limit_exceeded,
                  fmt::format("{} is larger than {} bytes", path, limits::private_file_bytes_max));
  }
  content.resize(size);
  return content;
}

Status write_private_file(const std::string& path, std::string_view content) {
  const std::string draft = fmt::format("{}.{}", path, getpid());
  constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW;
  const Fd file = Fd::open_unforked([&] { return ::open(draft.c_str(), flags, 0600); });
  if (!file) return failed(fmt::format("can't open {}", draft));
  const ssize_t written = ::write(file.get(), content.data(), content.size());
  const bool is_whole = written >= 0 && static_cast<std::size_t>(written) == content.size();
  if (is_whole && ::rename(draft.c_str(), path.c_str()) == 0) return {};
  Status status = failed(fmt::format("can't write {}", path));
  ::unlink(draft.c_str());
  return status;
}

Result<std::string> private_directory(std::string_view runtime_directory) {
  const std::string path = runtime_directory.empty() ? fmt::format("/tmp/hocket-{}", geteuid())
                                                     : fmt::format("{}/hocket", runtime_directory);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed(fmt::format("can't make the directory {}", path));
  }
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) return failed(fmt::format("can't look at {}", path));
  if (!S_ISDIR(about.st_mode)) {
    return Status(StatusCode::permission_denied, fmt::format("{} is not a directory", path))
        .with_hint("delete it, or set XDG_RUNTIME_DIR to a directory of your own");
  }
  if (Status status = check_owner(path, about, S_IRWXG | S_IRWXO); !status.ok()) return status;
  return path;
}

}  // namespace hocket
