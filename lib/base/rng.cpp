#include "base/rng.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <sys/random.h>

#include "base/log.hpp"
#include "base/text.hpp"

namespace hocket {

void random_bytes(std::span<std::byte> to) noexcept {
  while (!to.empty()) {
    const ssize_t count = getrandom(to.data(), to.size(), 0);
    if (count >= 0) {
      to = to.subspan(static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      log::line(log::Level::error, "the system gives no random bytes: getrandom: {} (errno {})",
                std::error_code(errno, std::system_category()).message(), errno);
      std::abort();
    }
  }
}

std::string random_hex(std::size_t bytes) {
  std::vector<std::byte> random(bytes);
  random_bytes(random);
  return hex(random);
}

}  // namespace hocket
