#include "engine/transports.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/library.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "engine/mixed.hpp"

namespace hocket::engine {
namespace {

constexpr const char* entry_point = "hocket_transport_v1";

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

bool is_in_list(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    if (trimmed(take_until(list, ",")) == name) return true;
  }
  return false;
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

Result<std::vector<const TransportKind*>> choose_transports(const FoundTransports& found,
                                                            std::string_view wanted,
                                                            std::span<const Setting> settings) {
  const auto built_in = built_in_transports();
  std::vector<const TransportKind*> chosen;
  std::string why;
  for (const TransportKind* const kind : found.kinds) {
    if (!wanted.empty() && !is_in_list(wanted, kind->name)) continue;
    if (const Status available = kind->available(settings); !available.ok()) {
      why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", kind->name, available.what());
      continue;
    }
    chosen.push_back(kind);
    if (wanted.empty() && std::ranges::find(built_in, kind) == built_in.end()) break;
  }
  if (!chosen.empty()) return chosen;
  if (why.empty()) why = fmt::format("there is none called {}", quote(wanted));
  return Status(StatusCode::unsupported, fmt::format("no transport can serve: {}", why))
      .with_hint("`hocket info` lists those that there are; HOCKET_TRANSPORT names one");
}

Result<MadeTransport> make_transport(std::span<const TransportKind* const> kinds,
                                     const TransportOptions& options) {
  MadeTransport made;
  std::vector<MixedTransport::Part> parts;
  Status failure;
  for (const TransportKind* const kind : kinds) {
    auto transport = kind->make(options);
    if (!transport.ok()) {
      failure = transport.status();
      if (failure.code() != StatusCode::unsupported) return failure;
      log::line(log::Level::info, "rank {}: without {}: {}", options.rank, kind->name,
                failure.what());
      continue;
    }
    made.names.emplace_back(kind->name);
    parts.push_back({.name = made.names.back(), .transport = *std::move(transport)});
  }
  if (parts.empty()) return failure;
  if (parts.size() == 1) {
    made.transport = std::move(parts.front().transport);
    return made;
  }
  auto mixed = MixedTransport::make(std::move(parts));
  if (!mixed.ok()) return mixed.status();
  made.transport = *std::move(mixed);
  return made;
}

std::string MadeTransport::name() const {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ",") + each;
  return text;
}

std::string MadeTransport::address() const {
  return names.size() > 1 ? transport->address() : list_item(names[0], transport->address());
}

Status MadeTransport::connect(std::vector<std::string> addresses) const {
  for (std::string& each : addresses) {
    if (names.size() == 1) each = address_in(each, names[0]);
  }
  return transport->connect(addresses);
}

}  // namespace hocket::engine
