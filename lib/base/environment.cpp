#include "base/environment.hpp"

#include <unistd.h>

namespace hocket {

std::string_view Environment::get(std::string_view name) const noexcept {
  std::string_view value;
  for (const char* const* each = entries_; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry = *each;
    if (entry.size() <= name.size() || entry[name.size()] != '=') continue;
    if (entry.starts_with(name)) value = entry.substr(name.size() + 1);
  }
  return value;
}

Environment process_environment() noexcept { return Environment(environ); }

}  // namespace hocket
