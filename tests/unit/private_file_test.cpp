#include "base/private_file.hpp"

#include <string>

#include <sys/stat.h>
#include <unistd.h>

#include "base/config.hpp"
#include "base/limits.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using hocket::private_directory;
using hocket::read_private_file;
using hocket::StatusCode;
using hocket::write_private_file;
using hocket::testing::TemporaryFolder;

namespace {

mode_t rights_of(const std::string& path) {
  struct stat about {};
  REQUIRE(::lstat(path.c_str(), &about) == 0);
  return about.st_mode & 0777;
}

/// read_secret with these two variables.
hocket::Result<std::string> secret(const std::string& text, const std::string& path) {
  const std::string entries[] = {"HOCKET_SECRET=" + text, "HOCKET_SECRET_FILE=" + path};
  const char* const environment[] = {entries[0].c_str(), entries[1].c_str(), nullptr};
  return hocket::read_secret(hocket::Config(environment));
}

}  // namespace

TEST_CASE("a private file holds what was written, for its owner alone") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  REQUIRE(write_private_file(path, "first, and longer").ok());
  REQUIRE(write_private_file(path, std::string("a\0b", 3)).ok());
  REQUIRE(read_private_file(path).value() == std::string("a\0b", 3));
  REQUIRE(rights_of(path) == 0600);
}

TEST_CASE("a file that others may read is refused") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  REQUIRE(write_private_file(path, "hush").ok());
  for (const mode_t mode : {0640u, 0604u, 0620u}) {
    REQUIRE(::chmod(path.c_str(), mode) == 0);
    const auto status = read_private_file(path).status();
    REQUIRE(status.code() == StatusCode::permission_denied);
    REQUIRE(status.to_string().find("chmod") != std::string::npos);
    REQUIRE(status.to_string().find("hush") == std::string::npos);
  }
}

TEST_CASE("what is no small file is refused") {
  const TemporaryFolder folder;
  REQUIRE(read_private_file(folder.path() + "/absent").status().code() == StatusCode::not_found);
  REQUIRE_FALSE(read_private_file(folder.path()).ok());

  const std::string path = folder.path() + "/file";
  const std::string largest(hocket::limits::private_file_bytes_max, 'x');
  REQUIRE(write_private_file(path, largest).ok());
  REQUIRE(read_private_file(path).value() == largest);
  REQUIRE(write_private_file(path, largest + "x").ok());
  REQUIRE(read_private_file(path).status().code() == StatusCode::limit_exceeded);
}

TEST_CASE("a private directory is made once, and is nobody else's") {
  const TemporaryFolder folder;
  const std::string path = private_directory(folder.path()).value();
  REQUIRE(path == folder.path() + "/hocket");
  REQUIRE(rights_of(path) == 0700);
  REQUIRE(private_directory(folder.path()).value() == path);

  REQUIRE(::chmod(path.c_str(), 0750) == 0);
  REQUIRE(private_directory(folder.path()).status().code() == StatusCode::permission_denied);
}

TEST_CASE("a private directory is neither a link nor a file") {
  const TemporaryFolder folder;
  REQUIRE(::mkdir((folder.path() + "/elsewhere").c_str(), 0700) == 0);
  REQUIRE(::symlink("elsewhere", (folder.path() + "/hocket").c_str()) == 0);
  REQUIRE(private_directory(folder.path()).status().code() == StatusCode::permission_denied);
  REQUIRE(::unlink((folder.path() + "/hocket").c_str()) == 0);
  REQUIRE(write_private_file(folder.path() + "/hocket", "").ok());
  REQUIRE(private_directory(folder.path()).status().code() == StatusCode::permission_denied);
}

TEST_CASE("the job's secret comes from its variable, else from a private file") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/secret";
  REQUIRE(secret("", "").value().empty());
  REQUIRE(secret("hush", path).value() == "hush");
  REQUIRE(secret("", path).status().code() == StatusCode::not_found);

  REQUIRE(write_private_file(path, " quiet please\n").ok());
  REQUIRE(secret("", path).value() == " quiet please");
  REQUIRE(write_private_file(path, "\n").ok());
  REQUIRE(secret("", path).status().code() == StatusCode::invalid_argument);
}
