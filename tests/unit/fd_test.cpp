#include "base/fd.hpp"

#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temporary_folder.hpp"

using hocket::UnforkedFd;
using hocket::testing::Child;
using hocket::testing::TemporaryFolder;

namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

UnforkedFd make_in(const TemporaryFolder& folder) {
  return UnforkedFd::open((folder.path() + "/file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

}  // namespace

TEST_CASE("a child does not get an unforked file") {
  const TemporaryFolder folder;
  UnforkedFd first = make_in(folder);
  REQUIRE(first);
  const UnforkedFd file = std::move(first);
  const int number = file.get();
  REQUIRE(is_open(number));
  Child child([&] { return !file && file.get() == -1 && !is_open(number); });
  REQUIRE(child.ended_well());
  REQUIRE(file.get() == number);
  REQUIRE(is_open(number));
}

TEST_CASE("a child that opens an unforked file keeps it from its own children") {
  const TemporaryFolder folder;
  UnforkedFd file = make_in(folder);
  Child child([&] {
    file = make_in(folder);
    const int number = file.get();
    Child grandchild([&] { return !file && !is_open(number); });
    return grandchild.ended_well() && is_open(number);
  });
  REQUIRE(child.ended_well());
  REQUIRE(is_open(file.get()));
}

TEST_CASE("an unforked file is closed once and for all") {
  const TemporaryFolder folder;
  int number = -1;
  {
    const UnforkedFd file = make_in(folder);
    number = file.get();
  }
  REQUIRE_FALSE(is_open(number));
  const hocket::Fd other(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  Child child([&] { return is_open(other.get()); });
  REQUIRE(child.ended_well());
}

TEST_CASE("an unforked file that can't be opened says why") {
  const TemporaryFolder folder;
  const UnforkedFd file = UnforkedFd::open((folder.path() + "/none").c_str(), O_RDONLY, 0);
  REQUIRE(errno == ENOENT);
  REQUIRE_FALSE(file);
}
