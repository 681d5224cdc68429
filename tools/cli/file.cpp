#include "file.hpp"

#include <fstream>

#include <fmt/format.h>

namespace hocket::cli {

Status write_file(const std::string& path, std::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (file) return {};
  return Status(StatusCode::system_error, fmt::format("{} can't be written", path))
      .with_hint("is there such a folder, may you write there, and is there room?");
}

}  // namespace hocket::cli
