#include "base/machine.hpp"

#include <array>
#include <cstddef>

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "base/text.hpp"

namespace hocket {

std::string own_machine() { return system_line("/proc/sys/kernel/random/boot_id", ""); }

/// Not by a stream, which takes a lack of memory for the end of the file.
std::string system_line(const char* path, std::string_view begin) {
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::array<char, 8192> bytes;
  const ssize_t count = file ? ::read(file.get(), bytes.data(), bytes.size()) : 0;
  std::string_view text(bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0);
  while (!text.empty()) {
    const std::string_view line = take_until(text, "\n");
    if (line.starts_with(begin)) return std::string(trimmed(line.substr(begin.size())));
  }
  return {};
}

}  // namespace hocket
