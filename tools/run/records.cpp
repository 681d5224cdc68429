#include "run/records.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <unistd.h>

#include "run/environment.hpp"
#include "trace/dump.hpp"
#include "trace/verdict.hpp"

namespace hocket::run {
namespace {

namespace fs = std::filesystem;

/// In memory where there is such a folder: what ranks write there is never written to a disk.
std::string make_folder() {
  std::error_code error;
  const fs::path memory = "/dev/shm";
  const bool has_memory = fs::is_directory(memory, error) && ::access(memory.c_str(), W_OK) == 0;
  const fs::path parent = has_memory ? memory : fs::temp_directory_path(error);
  std::string folder = parent / "hocket-run-XXXXXX";
  return ::mkdtemp(folder.data()) == nullptr ? std::string() : folder;
}

}  // namespace

Records::Records(const std::vector<std::string>& environment) {
  const std::string_view wanted = value_of(environment, "HOCKET_TRACE");
  is_ours_ = wanted.empty() || wanted == "on";
  if (is_ours_) {
    folder_ = make_folder();
  } else if (wanted != "off") {
    folder_ = wanted;
  }
}

Records::~Records() {
  std::error_code ignored;
  if (is_ours_ && !folder_.empty()) fs::remove_all(folder_, ignored);
}

std::vector<std::string> Records::variables() const {
  if (!is_ours_ || folder_.empty()) return {};
  return {"HOCKET_TRACE=" + folder_};
}

std::vector<std::string> Records::findings() const {
  if (folder_.empty()) return {};
  const auto files = trace::dumps_in(folder_);
  if (!files.ok()) return {};
  std::vector<trace::Dump> dumps;
  for (const std::string& file : *files) {
    auto dump = trace::read_dump(file);
    if (dump.ok()) dumps.push_back(std::move(*dump));
  }
  if (dumps.empty()) return {};
  const std::uint64_t last = std::ranges::max(dumps, {}, &trace::Dump::now).header.world;
  std::erase_if(dumps, [&](const trace::Dump& each) { return each.header.world != last; });
  return trace::findings(trace::worlds_of(std::move(dumps)).front());
}

}  // namespace hocket::run
