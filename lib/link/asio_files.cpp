#include "link/asio_files.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/text.hpp"

namespace hocket::link {
namespace {

std::string read_file(const std::string& path) {
  const Fd file = Fd::open_unforked([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); });
  std::string text;
  std::array<char, 4096> some;
  for (ssize_t bytes = 0; (bytes = ::read(file.get(), some.data(), some.size())) > 0;) {
    text.append(some.data(), static_cast<std::size_t>(bytes));
  }
  return text;
}

/// From lines such as "tfd:        8 events:       19 data:     5581f0", one for each.
std::vector<int> watched_by(int epoll) {
  constexpr std::string_view begin = "tfd:";
  const std::string text = read_file("/proc/self/fdinfo/" + std::to_string(epoll));
  std::vector<int> files;
  std::string_view rest = text;
  while (!rest.empty()) {
    std::string_view line = take_until(rest, "\n");
    if (!line.starts_with(begin)) continue;
    line.remove_prefix(begin.size());
    line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
    const auto number = parse_integer(line.substr(0, line.find(' ')));
    if (number) files.push_back(static_cast<int>(*number));
  }
  return files;
}

struct CloseFolder {
  void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// Not by std::filesystem, of which some functions end the process when memory runs out.
std::vector<int> own_epolls() {
  constexpr const char* folder = "/proc/self/fd";
  const std::unique_ptr<DIR, CloseFolder> all(::opendir(folder));
  std::vector<int> epolls;
  while (const dirent* const each = all == nullptr ? nullptr : ::readdir(all.get())) {
    const auto number = parse_integer(each->d_name);
    std::array<char, 64> target;
    const ssize_t bytes =
        ::readlinkat(::dirfd(all.get()), each->d_name, target.data(), target.size());
    if (!number || bytes < 0) continue;
    const std::string_view of(target.data(), static_cast<std::size_t>(bytes));
    if (of.ends_with("[eventpoll]")) epolls.push_back(static_cast<int>(*number));
  }
  return epolls;
}

}  // namespace

ReactorFiles::ReactorFiles(int socket) {
  for (const int epoll : own_epolls()) {
    std::vector<int> files = watched_by(epoll);
    if (std::erase(files, socket) == 0) continue;
    files.push_back(epoll);
    files_ = std::move(files);
    break;
  }
  ForkPause pause;
  std::erase_if(files_, [&](int file) { return !pause.add(file); });
}

ReactorFiles::~ReactorFiles() {
  ForkPause pause;
  for (const int each : files_) pause.remove(each);
}

}  // namespace hocket::link
