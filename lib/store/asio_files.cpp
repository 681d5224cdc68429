#include "store/asio_files.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/text.hpp"

namespace hocket::store {
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

}  // namespace

ReactorFiles::ReactorFiles(int socket) {
  std::error_code error;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd", error)) {
    const auto of = std::filesystem::read_symlink(each.path(), error);
    if (error || of.native().find("[eventpoll]") == std::string::npos) continue;
    const auto epoll = parse_integer(each.path().filename().native());
    if (!epoll) continue;
    std::vector<int> files = watched_by(static_cast<int>(*epoll));
    if (std::erase(files, socket) == 0) continue;
    files.push_back(static_cast<int>(*epoll));
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

}  // namespace hocket::store
