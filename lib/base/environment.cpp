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

ChangedEnvironment::ChangedEnvironment(const Environment& base, std::span<const Setting> settings) {
  texts_.reserve(settings.size());  // so that no text moves
  for (const char* const* each = base.entries(); each != nullptr && *each != nullptr; ++each) {
    entries_.push_back(*each);
  }
  for (const Setting& each : settings) {
    entries_.push_back(texts_.emplace_back(each.name + '=' + each.value).c_str());
  }
  entries_.push_back(nullptr);
}

Environment process_environment() noexcept { return Environment(environ); }

}  // namespace hocket
