// A file store in a process that forks.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include <poll.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "store/file_store.hpp"
#include "support/catch.hpp"
#include "support/child.hpp"
#include "support/temporary_folder.hpp"

using namespace std::chrono_literals;
using hocket::Duration;
using hocket::Fd;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::FileStore;
using hocket::store::Store;
using hocket::testing::Child;
using hocket::testing::TemporaryFolder;

namespace {

constexpr Duration before_long = 60s;  // on a machine under load

std::unique_ptr<FileStore> must_open(const std::string& path) {
  auto store = FileStore::open({.path = path, .timeout = before_long});
  INFO(store.status().to_string());
  REQUIRE(store.ok());
  return std::move(*store);
}

bool add_many(Store& store, int count) {
  for (int i = 0; i < count; ++i) {
    if (!store.add("sum", 1).ok()) return false;
  }
  return true;
}

struct Pipe {
  Fd read_end;
  Fd write_end;
};

Pipe make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  return {.read_end = Fd(ends[0]), .write_end = Fd(ends[1])};
}

/// Nothing comes when nobody has the other end any more.
bool comes_byte(const Fd& read_end) {
  char byte = 0;
  return ::read(read_end.get(), &byte, 1) == 1;
}

/// A child that outlives this process, until nobody can write to the pipe. Returns when it runs:
/// not before has it closed what it must not have.
void leave_child(Pipe& life) {
  const Pipe birth = make_pipe();
  if (fork() == 0) {
    life.write_end.reset();
    if (::write(birth.write_end.get(), "", 1) == 1) comes_byte(life.read_end);
    _exit(0);
  }
  comes_byte(birth.read_end);
}

/// Whether somebody still has the end that is read.
bool is_read(const Fd& write_end) {
  pollfd events{.fd = write_end.get(), .events = POLLOUT, .revents = 0};
  return poll(&events, 1, 0) == 1 && (events.revents & POLLERR) == 0;
}

void await_growth(const std::string& path, std::uintmax_t bytes) {
  const auto deadline = hocket::Deadline::after(hocket::monotonic_clock(), before_long);
  while (std::filesystem::file_size(path) <= bytes) {
    REQUIRE_FALSE(deadline.passed(hocket::monotonic_clock().now()));
    std::this_thread::sleep_for(1ms);
  }
}

}  // namespace

TEST_CASE("a child goes on with its parent's store as one of its own") {
  constexpr int count = 2000;
  const TemporaryFolder folder;
  const auto store = must_open(folder.path() + "/store");
  REQUIRE(store->set("k", "v").ok());
  Child child([&] {
    Child grandchild([&] { return add_many(*store, count); });
    return store->get("k").value() == "v" && add_many(*store, count) && grandchild.ended_well();
  });
  REQUIRE(add_many(*store, count));
  REQUIRE(child.ended_well());
  REQUIRE(store->get("sum").value() == std::to_string(3 * count));
}

TEST_CASE("a child meets its parent at a barrier") {
  const TemporaryFolder folder;
  const auto store = must_open(folder.path() + "/store");
  Child child([&] { return store->barrier("b", 2).ok() && store->barrier("b", 2).ok(); });
  REQUIRE(store->barrier("b", 2).ok());
  REQUIRE(store->barrier("b", 2).ok());
  REQUIRE(child.ended_well());
}

TEST_CASE("who dies at a barrier is not counted, though a child of it lives on") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open(path);
  REQUIRE(store->ping().ok());
  const std::uintmax_t before = std::filesystem::file_size(path);
  Pipe life = make_pipe();
  Child caller([&] {
    const auto own = FileStore::open({.path = path}).value();
    leave_child(life);
    return own->barrier("b", 2).ok();
  });
  life.read_end.reset();
  await_growth(path, before);
  REQUIRE(store->ping().ok());  // then the caller has let go of the file, and marked its place
  caller.end();
  REQUIRE(is_read(life.write_end));
  const Status status = store->barrier("b", 2, 50ms);
  INFO(status.to_string());
  REQUIRE(status.what().find("1 of 2") != std::string_view::npos);
  REQUIRE(is_read(life.write_end));
}

TEST_CASE("a child does not take another file for its parent's") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open(path);
  std::filesystem::rename(path, folder.path() + "/old");
  Child alone([&] { return store->ping().what().find("can't open") != std::string_view::npos; });
  REQUIRE(alone.ended_well());
  REQUIRE_FALSE(std::filesystem::exists(path));

  (void)must_open(path);
  const std::uintmax_t before = std::filesystem::file_size(path);
  Child misled([&] {
    const Status first = store->set("k", "v");
    const Status again = store->set("k", "v");
    return first.code() == StatusCode::protocol_error && again.code() == first.code() &&
           again.what().find("replaced") != std::string_view::npos;
  });
  REQUIRE(misled.ended_well());
  REQUIRE(std::filesystem::file_size(path) == before);
  REQUIRE(store->set("k", "v").ok());
}
