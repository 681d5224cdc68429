#include "device/runtime.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/library.hpp"
#include "base/log.hpp"
#include "base/text.hpp"

namespace hocket::device {
namespace {

constexpr const char* module_name = "hocket_cuda.so";

/// Where modules of this installation are, the likeliest first.
std::vector<std::string> module_files() {
  std::vector<std::string> files;
  Dl_info self = {};
  if (dladdr(reinterpret_cast<const void*>(&module_files), &self) != 0 && self.dli_fname) {
    std::error_code error;
    const auto file = std::filesystem::canonical(self.dli_fname, error);
    if (!error) files.push_back(file.parent_path() / "hocket" / module_name);
  }
  std::string installed = std::filesystem::path(HOCKET_MODULE_FOLDER) / module_name;
  if (std::ranges::find(files, installed) == files.end()) files.push_back(std::move(installed));
  return files;
}

Result<Runtime> find_runtime() {
  const std::string wanted = process_config().get(variables::device_module);
  if (wanted == "none") {
    return Status(StatusCode::unsupported, "HOCKET_DEVICE_MODULE=none asks for no device memory");
  }
  if (!wanted.empty()) return load_runtime(wanted);
  const std::vector<std::string> files = module_files();
  for (const std::string& file : files) {
    std::error_code error;
    if (std::filesystem::exists(file, error)) return load_runtime(file);
  }
  return Status(StatusCode::unsupported, fmt::format("there is no CUDA module at {}{}",
                                                     joined(files, " or "), HOCKET_CUDA_ABSENT))
      .with_hint("install it, or name its file by HOCKET_DEVICE_MODULE");
}

}  // namespace

Result<Runtime> load_runtime(const std::string& file) {
  const char* const names[] = {file.c_str()};
  const auto library = Library::open(names);
  if (!library.ok()) return library.status();
  const Table* (*entry)() = nullptr;
  if (Status status = library->find(table_entry_point, entry); !status.ok()) return status;
  const Table* const table = entry();
  if (table->version != table_version) {
    return Status(StatusCode::unsupported,
                  fmt::format("the module {} speaks version {}, and this Hocket version {}", file,
                              table->version, table_version))
        .with_hint("install the module of the same release");
  }
  std::array<char, 512> why = {};
  if (table->available(why.data(), why.size()) != 0) {
    return Status(StatusCode::unsupported, why.data());
  }
  log::line(log::Level::info, "device memory by {}", file);
  return Runtime(*table);
}

const Result<Runtime>& process_runtime() {
  static const Result<Runtime>& found = *new Result<Runtime>(find_runtime());
  return found;
}

Status Runtime::failure(int error, std::string_view what) const {
  return {StatusCode::system_error, fmt::format("{}: the {} runtime says {} ({})", what,
                                                table_->name, table_->error_text(error), error)};
}

Result<MemoryFacts> Runtime::facts_of(const void* memory) const {
  MemoryFacts facts;
  if (Status status = check(table_->facts_of(memory, &facts), "what a pointer points to");
      !status.ok()) {
    return status;
  }
  return facts;
}

Result<std::string> Runtime::identify(int device) const {
  std::array<char, 128> text = {};
  if (Status status = check(table_->identify(device, text.data(), text.size()),
                            fmt::format("the name of device {}", device));
      !status.ok()) {
    return status;
  }
  return std::string(text.data());
}

std::string Runtime::describe() const {
  std::array<char, 512> text = {};
  table_->describe(text.data(), text.size());
  return text.data();
}

Result<OwnStream> make_stream(const Runtime& runtime) {
  void* handle = nullptr;
  Status status = runtime.check(runtime->make_stream(&handle), "making a stream");
  if (!status.ok()) return status;
  return OwnStream(runtime, handle);
}

Result<Event> make_event(const Runtime& runtime, bool is_timed) {
  void* handle = nullptr;
  Status status = runtime.check(runtime->make_event(is_timed ? 1 : 0, &handle), "making an event");
  if (!status.ok()) return status;
  return Event(runtime, handle);
}

Status record(const Runtime& runtime, const Event& event, void* stream) {
  return runtime.check(runtime->record(event.get(), stream), "recording an event");
}

Status hold_up(const Runtime& runtime, void* stream, const Event& event) {
  return runtime.check(runtime->wait_for_event(stream, event.get()),
                       "making a stream wait for an event");
}

Result<bool> is_over(const Runtime& runtime, const Event& event) {
  int over = 0;
  Status status = runtime.check(runtime->query(event.get(), &over), "asking for an event");
  if (!status.ok()) return status;
  return over != 0;
}

Result<Memory> Memory::make(const Runtime& runtime, MemoryKind kind, std::size_t bytes) {
  void* data = nullptr;
  Status status = runtime.check(runtime->allocate(static_cast<std::int32_t>(kind), bytes, &data),
                                fmt::format("allocating {} bytes of {} memory", bytes, name(kind)));
  if (!status.ok()) return status;
  return Memory(runtime, static_cast<std::int32_t>(kind), data);
}

}  // namespace hocket::device

namespace hocket::inline v1 {
namespace {

constexpr std::array<std::string_view, 5> kind_names = {"detect", "host", "pinned", "device",
                                                        "managed"};

}  // namespace

std::string_view name(MemoryKind kind) noexcept {
  const auto index = static_cast<std::size_t>(kind);
  return index < kind_names.size() ? kind_names.at(index) : "unknown";
}

std::optional<MemoryKind> parse_memory_kind(std::string_view text) noexcept {
  for (std::size_t i = 1; i < kind_names.size(); ++i) {
    if (kind_names.at(i) == text) return static_cast<MemoryKind>(i);
  }
  return std::nullopt;
}

MemoryKind memory_kind(const void* memory) {
  const Result<device::Runtime>& runtime = device::process_runtime();
  if (!runtime.ok() || memory == nullptr) return MemoryKind::host;
  const auto facts = (*runtime).facts_of(memory);
  if (!facts.ok()) throw_error(facts.status());
  return static_cast<MemoryKind>(facts->kind);
}

}  // namespace hocket::inline v1
