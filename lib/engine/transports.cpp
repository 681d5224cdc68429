#include "engine/transports.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "base/library.hpp"

namespace hocket::engine {
namespace {

constexpr const char* entry_point = "hocket_transport_v0";

/// A folder's files *.so in the order of their names; of what is no folder, itself.
std::vector<std::string> files_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return {path};
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.path().extension() == ".so") files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

Result<const TransportKind*> load(const std::string& file) {
  const char* const names[] = {file.c_str()};
  const auto library = Library::open(names);
  if (!library.ok()) return library.status();
  const TransportKind* (*entry)() = nullptr;
  if (Status status = library->find(entry_point, entry); !status.ok()) return status;
  const TransportKind* const kind = entry();
  if (kind != nullptr && !kind->name.empty() && kind->available != nullptr &&
      kind->make != nullptr) {
    return kind;
  }
  return Status(StatusCode::invalid_argument, fmt::format("{} gives no transport", entry_point));
}

bool has_name(const std::vector<const TransportKind*>& kinds, std::string_view name) {
  return std::ranges::any_of(kinds, [name](const auto* kind) { return kind->name == name; });
}

void add_file(const std::string& file, FoundTransports& found) {
  const auto kind = load(file);
  if (!kind.ok()) {
    found.complaints.push_back(fmt::format("no transport from {}: {}", file, kind.status().what()));
  } else if (has_name(found.kinds, (*kind)->name)) {
    found.complaints.push_back(
        fmt::format("the transport {} of {} is there already", (*kind)->name, file));
  } else {
    found.kinds.push_back(*kind);
  }
}

}  // namespace

FoundTransports find_transports(std::string_view path) {
  FoundTransports found;
  while (!path.empty()) {
    const std::string_view item = path.substr(0, path.find(':'));
    path.remove_prefix(std::min(item.size() + 1, path.size()));
    if (item.empty()) continue;
    for (const std::string& file : files_at(std::string(item))) add_file(file, found);
  }
  for (const TransportKind* const kind : built_in_transports()) {
    if (!has_name(found.kinds, kind->name)) found.kinds.push_back(kind);
  }
  return found;
}

}  // namespace hocket::engine
