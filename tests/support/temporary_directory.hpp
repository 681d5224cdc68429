#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace hocket::testing {

/// A new directory that is gone, with all in it, when the object is.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "hocket-test-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }

  /// The path of a file in it.
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace hocket::testing
