#include "run/record_folder.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "base/exception.hpp"
#include "record/layout.hpp"
#include "record/recorder.hpp"
#include "run/environment.hpp"
#include "trace/dump.hpp"
#include "trace/verdict.hpp"

namespace hocket::run {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_name = "hocket-run-XXXXXX";
constexpr std::string_view folder_prefix = folder_name.substr(0, folder_name.size() - 6);

/// In memory where there is room for so many bytes: what ranks write there goes to no disk.
std::string make_folder(std::uintmax_t bytes) {
  std::error_code error;
  const fs::path memory = "/dev/shm";
  const bool has_memory =
      ::access(memory.c_str(), W_OK) == 0 && fs::space(memory, error).available >= bytes && !error;
  const fs::path parent = has_memory ? memory : fs::temp_directory_path(error);
  std::string folder = parent / folder_name;
  return ::mkdtemp(folder.data()) == nullptr ? std::string() : folder;
}

/// That of a launcher which has started this one.
bool is_of_launcher(const std::string& folder) {
  return fs::path(folder).filename().native().starts_with(folder_prefix);
}

}  // namespace

RecordFolder::RecordFolder(const std::vector<std::string>& environment, int ranks) {
  const record::Wish wish = record::parse_wish(value_of(environment, "HOCKET_TRACE"));
  is_ours_ = wish.is_on && (wish.folder.empty() || is_of_launcher(wish.folder));
  folder_ = wish.folder;
  if (is_ours_) {
    folder_ = make_folder(2 * record::file_bytes * static_cast<std::uintmax_t>(ranks));
  }
}

RecordFolder::~RecordFolder() {
  std::error_code ignored;
  if (is_ours_ && !folder_.empty()) fs::remove_all(folder_, ignored);
}

std::vector<std::string> RecordFolder::variables() const {
  if (!is_ours_) return {};
  return {"HOCKET_TRACE=" + (folder_.empty() ? "on" : folder_)};
}

std::vector<std::string> RecordFolder::findings() const noexcept {
  std::vector<std::string> sentences;
  static_cast<void>(described([&] {
    sentences = read();
    return Status();
  }));
  return sentences;
}

std::vector<std::string> RecordFolder::read() const {
  if (folder_.empty()) return {};
  const auto files = trace::record_files_in(folder_);
  if (!files.ok()) return {};
  std::vector<trace::Dump> dumps;
  for (const std::string& file : *files) {
    auto dump = trace::read_dump(file);
    if (dump.ok() && dump->header.universal_time >= begun_) dumps.push_back(std::move(*dump));
  }
  if (dumps.empty()) return {};
  const auto last_time = [](const trace::Dump& each) { return each.universal(each.now); };
  const std::uint64_t last = std::ranges::max(dumps, {}, last_time).header.world;
  std::erase_if(dumps, [&](const trace::Dump& each) { return each.header.world != last; });
  return trace::findings(trace::worlds_of(std::move(dumps)).front());
}

}  // namespace hocket::run
