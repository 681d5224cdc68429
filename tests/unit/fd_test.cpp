#include "base/fd.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temporary_folder.hpp"

using hocket::Fd;
using hocket::testing::Child;
using hocket::testing::TemporaryFolder;

namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

Fd make_in(const TemporaryFolder& folder) {
  const std::string path = folder.path() + "/file";
  return Fd::open_unforked(
      [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); });
}

}  // namespace

TEST_CASE("a child does not get an unforked file") {
  const TemporaryFolder folder;
  Fd first = make_in(folder);
  REQUIRE(first);
  const Fd file = std::move(first);
  const int number = file.get();
  REQUIRE(is_open(number));
  Child child([&] { return file.is_inherited() && !is_open(number); });
  REQUIRE(child.ended_well());
  REQUIRE(file.get() == number);
  REQUIRE(is_open(number));
}

TEST_CASE("a child that opens an unforked file keeps it from its own children") {
  const TemporaryFolder folder;
  Fd file = make_in(folder);
  Child child([&] {
    file = make_in(folder);
    const int number = file.get();
    Child grandchild([&] { return file.is_inherited() && !is_open(number); });
    return grandchild.ended_well() && is_open(number);
  });
  REQUIRE(child.ended_well());
  REQUIRE(is_open(file.get()));
}

TEST_CASE("an unforked file is closed once and for all") {
  const TemporaryFolder folder;
  int number = -1;
  {
    const Fd file = make_in(folder);
    number = file.get();
  }
  REQUIRE_FALSE(is_open(number));
  const Fd other(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  Child child([&] { return is_open(other.get()); });
  REQUIRE(child.ended_well());
}

TEST_CASE("a child closes no file of its own that has the number of an unforked one") {
  const TemporaryFolder folder;
  auto file = std::make_unique<Fd>(make_in(folder));
  auto released = std::make_unique<Fd>(make_in(folder));
  const int kept = released->release();
  Child child([&] {
    const int number = file->get();
    const Fd other(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
    if (other.get() != number || !is_open(kept)) return false;
    Fd moved = std::move(*file);
    moved = Fd();
    file.reset();
    return is_open(number);
  });
  REQUIRE(child.ended_well());
  REQUIRE(is_open(file->get()));
  ::close(kept);
}

TEST_CASE("a file that was not opened as unforked is the child's, too") {
  const TemporaryFolder folder;
  const Fd file(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  Child child([&] { return !file.is_inherited() && is_open(file.get()); });
  REQUIRE(child.ended_well());
}

TEST_CASE("an unforked file that can't be opened says why") {
  const TemporaryFolder folder;
  const Fd file = Fd::open_unforked(
      [&] { return ::open((folder.path() + "/none").c_str(), O_RDONLY | O_CLOEXEC); });
  REQUIRE(errno == ENOENT);
  REQUIRE_FALSE(file);
}
