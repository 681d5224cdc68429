#include "store/file_store.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.hpp"
#include "store/log_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace std::chrono_literals;
using hocket::Duration;
using hocket::Fd;
using hocket::Result;
using hocket::Status;
using hocket::StatusCode;
using hocket::store::FileStore;
using hocket::store::FileStoreOptions;
using hocket::store::Kind;
using hocket::store::LogFile;
using hocket::testing::TemporaryFolder;
using Strings = std::vector<std::string>;

namespace {

constexpr Duration soon = 20s;  // on a machine under load

using Opened = Result<std::unique_ptr<FileStore>>;

Opened open_at(const std::string& path) { return FileStore::open({.path = path, .timeout = soon}); }

std::unique_ptr<FileStore> must_open(FileStoreOptions options) {
  Opened store = FileStore::open(std::move(options));
  INFO(store.status().to_string());
  REQUIRE(store.ok());
  return std::move(*store);
}

void require_ok(const Status& status) {
  INFO(status.to_string());
  REQUIRE(status.ok());
}

void require_failure(const Status& status, StatusCode code, const Strings& words) {
  INFO(status.to_string());
  REQUIRE(status.code() == code);
  for (const std::string& word : words) {
    REQUIRE(status.to_string().find(word) != std::string::npos);
  }
}

std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  std::filesystem::permissions(
      path, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

/// A file of a store, as long as it was after each of its first changes.
struct Sample {
  std::string bytes;
  std::vector<std::size_t> ends;  // no record; a is set; b is set; an element is pushed
};

Sample sample(const std::string& path) {
  Sample made;
  const auto store = must_open({.path = path});
  const auto note_end = [&] { made.ends.push_back(contents(path).size()); };
  note_end();
  require_ok(store->set("a", "first"));
  note_end();
  require_ok(store->set("b", "second"));
  note_end();
  require_ok(store->queue_push("q", "element"));
  note_end();
  made.bytes = contents(path);
  return made;
}

/// Comes to barrier "b" as another process does, up to the moment at which it marks its record.
LogFile::Position write_caller(LogFile& log, std::int64_t size) {
  REQUIRE(log.try_lock().value());
  require_ok(log.look());
  while (log.next().value()) continue;
  std::string record = "\x01";
  hocket::store::encode({.kind = Kind::barrier, .keys = {"b"}, .number = size}, record);
  const LogFile::Position position = log.append(std::move(record)).value();
  log.unlock();
  return position;
}

/// The number under which this process has the file open, which it has once.
int descriptor_of(const std::string& path) {
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;  // the one that lists them
    if (std::filesystem::read_symlink(each.path(), ignored) == path) {
      return std::stoi(each.path().filename());
    }
  }
  FAIL(path << " is not open");
  return -1;
}

mode_t mode_of(const std::string& path) {
  struct stat found {};
  REQUIRE(stat(path.c_str(), &found) == 0);
  return found.st_mode & 0777;
}

}  // namespace

TEST_CASE("what a process wrote is there for the next") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  (void)sample(path);
  const auto store = must_open({.path = path});
  REQUIRE(store->keys().value() == Strings{"a", "b"});
  REQUIRE(store->get("b").value() == "second");
  REQUIRE(store->queue_pop("q").value() == "element");
  REQUIRE(must_open({.path = path})->queue_len("q").value() == 0);
  REQUIRE(store->describe() == "the store in " + path);
}

TEST_CASE("what a writer left unfinished at the end is cut off") {
  const TemporaryFolder folder;
  const Sample made = sample(folder.path() + "/sample");
  const std::string path = folder.path() + "/torn";
  for (std::size_t length = 0; length < made.bytes.size(); ++length) {
    CAPTURE(length);
    write(path, made.bytes.substr(0, length));
    {
      const auto store = must_open({.path = path});
      REQUIRE(store->check({"a"}).value() == (length >= made.ends[1]));
      REQUIRE(store->check({"b"}).value() == (length >= made.ends[2]));
      REQUIRE(store->queue_len("q").value() == 0);
      require_ok(store->set("after", "it"));
    }
    REQUIRE(must_open({.path = path})->get("after").value() == "it");
  }
}

TEST_CASE("an unfinished record is cut off while others have the file open") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path});
  const auto other = must_open({.path = path});
  require_ok(store->set("a", "1"));
  std::ofstream(path, std::ios::binary | std::ios::app) << "torn";
  require_ok(other->set("b", "2"));
  REQUIRE(store->multi_get({"a", "b"}).value() == Strings{"1", "2"});
}

TEST_CASE("damage is noticed wherever it is") {
  const TemporaryFolder folder;
  const Sample made = sample(folder.path() + "/sample");
  const std::string path = folder.path() + "/damaged";
  const std::size_t last = made.ends[2];
  for (std::size_t at = 0; at < made.bytes.size(); ++at) {
    CAPTURE(at);
    std::string bytes = made.bytes;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    write(path, bytes);
    const Opened store = open_at(path);
    constexpr std::size_t head_bytes = 12;
    if (at >= last + head_bytes) {  // as if it had not been finished
      require_ok(store.status());
      REQUIRE((*store)->queue_len("q").value() == 0);
      REQUIRE((*store)->get("b").value() == "second");
      continue;
    }
    REQUIRE_FALSE(store.ok());
    REQUIRE(contents(path) == bytes);
    if (at < 8) continue;  // not our file at all
    require_failure(store.status(), StatusCode::protocol_error, {path, "damaged", "remove"});
  }
}

TEST_CASE("a file that is no store's is left alone") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/letter";
  for (const std::string& letter : Strings{"h", "hello", "a letter to somebody, long enough"}) {
    write(path, letter + "!");
    require_failure(open_at(path).status(), StatusCode::permission_denied,
                    {path, "no file of a store", "does not exist yet"});
    REQUIRE(contents(path) == letter + "!");
  }
}

TEST_CASE("a file that is removed or shortened in use is an error") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path});
  require_ok(store->set("a", "1"));
  std::filesystem::resize_file(path, 10);
  require_failure(store->set("b", "2"), StatusCode::protocol_error, {path, "shortened"});
  std::filesystem::remove(path);
  require_failure(store->get("a").status(), StatusCode::protocol_error, {path, "removed"});
}

TEST_CASE("a file that can't be read for a while is no damaged one") {
  const TemporaryFolder folder;
  const std::string path = std::filesystem::canonical(folder.path()).string() + "/store";
  const auto store = must_open({.path = path});
  const int number = descriptor_of(path);
  require_ok(must_open({.path = path})->set("k", "v"));
  {
    const Fd readable(dup(number));
    const Fd writable(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(dup2(writable.get(), number) == number);
    for (int i = 0; i < 2; ++i) {
      const Status status = store->get("k").status();
      require_failure(status, StatusCode::system_error, {"can't read", path});
      REQUIRE(status.system_error() == EBADF);
    }
    REQUIRE(dup2(readable.get(), number) == number);
  }
  REQUIRE(store->get("k").value() == "v");
}

TEST_CASE("the file is the user's alone") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const mode_t before = umask(0);
  (void)must_open({.path = path});
  umask(before);
  REQUIRE(mode_of(path) == 0600);
  for (const mode_t mode : {0620u, 0602u, 0666u}) {
    REQUIRE(chmod(path.c_str(), mode) == 0);
    require_failure(open_at(path).status(), StatusCode::permission_denied,
                    {path, "written by others"});
  }
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  (void)must_open({.path = path});
}

TEST_CASE("a file of another user is refused") {
  if (geteuid() != 0) {
    WARN("skipped: only root can give a file away");
    return;
  }
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  (void)must_open({.path = path});
  REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
  require_failure(open_at(path).status(), StatusCode::permission_denied,
                  {path, "belongs to another user"});
}

TEST_CASE("what is no plain file is refused") {
  const TemporaryFolder folder;
  const std::string target = folder.path() + "/store";
  (void)must_open({.path = target});
  const std::string link = folder.path() + "/link";
  REQUIRE(symlink(target.c_str(), link.c_str()) == 0);
  const Status status = open_at(link).status();
  require_failure(status, StatusCode::system_error, {link, "not a link"});
  REQUIRE(status.system_error() == ELOOP);

  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  require_failure(open_at(pipe).status(), StatusCode::permission_denied, {pipe, "no plain file"});
  REQUIRE(open_at(folder.path()).status().system_error() == EISDIR);
  const Status nowhere = open_at(folder.path() + "/none/store").status();
  require_failure(nowhere, StatusCode::system_error, {"/none/store", "No such file"});
}

TEST_CASE("a file of another job is refused, and says whose it is") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path, .job = "yesterday"});
  require_ok(store->set("k", "v"));
  const Opened other = FileStore::open({.path = path, .job = "today"});
  require_failure(other.status(), StatusCode::mismatch,
                  {path, "\"yesterday\"", "\"today\"", "remove the file"});
  REQUIRE(must_open({.path = path, .job = "yesterday"})->get("k").value() == "v");
  REQUIRE(store->clone().value()->get("k").value() == "v");
}

TEST_CASE("a file for one run forgets an earlier one when nobody has it open any more") {
  const TemporaryFolder folder;
  const FileStoreOptions run = {
      .path = folder.path() + "/store", .job = "ours", .timeout = soon, .is_for_one_run = true};
  {
    const auto first = must_open(run);
    require_ok(first->set("k", "v"));
    const auto second = must_open(run);
    REQUIRE(second->get("k").value() == "v");
    REQUIRE(second->clone().value()->get("k").value() == "v");
  }
  const auto next = must_open(run);
  REQUIRE(next->num_keys().value() == 0);
  require_ok(next->set("k", "w"));
  REQUIRE(must_open(run)->get("k").value() == "w");
}

TEST_CASE("a file for one run forgets nothing of another job") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  require_ok(must_open({.path = path, .job = "yesterday"})->set("k", "v"));
  const Opened other = FileStore::open({.path = path, .job = "today", .is_for_one_run = true});
  require_failure(other.status(), StatusCode::mismatch, {"\"yesterday\""});
  REQUIRE(must_open({.path = path, .job = "yesterday"})->get("k").value() == "v");
}

TEST_CASE("a file says whether only its user may read it") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  REQUIRE(must_open({.path = path})->is_private().value());
  REQUIRE(chmod(path.c_str(), 0644) == 0);
  REQUIRE_FALSE(must_open({.path = path})->is_private().value());
}

TEST_CASE("a file that is full takes no more, and still answers") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path, .timeout = soon, .bytes_max = 2000});
  require_ok(store->set("k", std::string(1000, 'v')));
  require_failure(store->set("k", std::string(1000, 'w')), StatusCode::limit_exceeded,
                  {path, "the file is full", "2000"});
  REQUIRE(store->get("k").value() == std::string(1000, 'v'));
  while (store->add("n", 1).ok()) continue;
  REQUIRE(contents(path).size() <= 2000);
  REQUIRE(store->barrier("b", 2, 0s).code() == StatusCode::limit_exceeded);
  REQUIRE(must_open({.path = path})->get("k").value() == std::string(1000, 'v'));
}

TEST_CASE("what changes nothing is not written") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path});
  require_ok(store->set("k", "v"));
  const std::string before = contents(path);
  REQUIRE_FALSE(store->compare_set("k", "other", "new").value().is_set);
  REQUIRE_FALSE(store->delete_key("gone").value());
  REQUIRE_FALSE(store->add("k", 1).ok());
  REQUIRE_FALSE(store->queue_pop("q", 5ms).ok());
  REQUIRE_FALSE(store->get("gone", 5ms).ok());
  require_ok(store->barrier("b", 1));
  require_ok(store->ping());
  REQUIRE(store->num_keys().value() == 1);
  REQUIRE(contents(path) == before);
}

TEST_CASE("a process that is stopped with the lock holds nobody up for ever") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path});
  require_ok(store->set("k", "v"));
  LogFile stopped = LogFile::open(path).value();
  REQUIRE(stopped.try_lock().value());
  store->set_timeout(300ms);
  const auto start = hocket::monotonic_clock().now();
  for (const Status& status :
       {store->set("k", "w"), store->get("k").status(), store->get("k", 0s).status(),
        store->barrier("b", 2), store->queue_pop("q").status(), store->clone().status(),
        FileStore::open({.path = path, .timeout = 300ms}).status()}) {
    require_failure(status, StatusCode::timeout, {path, "does not let go", "stopped"});
  }
  REQUIRE(hocket::monotonic_clock().now() - start >= 6 * 300ms + FileStore::lock_patience);
  REQUIRE(hocket::monotonic_clock().now() - start < soon);
  stopped.unlock();
  REQUIRE(store->get("k").value() == "v");
}

TEST_CASE("a caller of a barrier that can't withdraw in time is not counted") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path});
  const auto other = must_open({.path = path});
  Status first;
  std::thread caller([&] { first = store->barrier("b", 2, 500ms); });
  std::this_thread::sleep_for(100ms);
  LogFile stopped = LogFile::open(path).value();
  while (!stopped.try_lock().value()) std::this_thread::sleep_for(1ms);
  caller.join();
  require_failure(first, StatusCode::timeout, {"barrier"});
  stopped.unlock();
  REQUIRE(other->barrier("b", 2, 50ms).what().find("1 of 2") != std::string_view::npos);
  REQUIRE(store->barrier("b", 2, 50ms).what().find("1 of 2") != std::string_view::npos);
}

TEST_CASE("a caller of a barrier who died is not counted, wherever it died") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/store";
  const auto store = must_open({.path = path});
  {
    LogFile caller = LogFile::open(path).value();
    require_ok(caller.mark(write_caller(caller, 2)));
    require_failure(store->barrier("b", 3, 0s), StatusCode::mismatch, {"\"b\"", "3", "2"});
    require_ok(caller.mark(write_caller(caller, 2)));
  }
  REQUIRE(store->barrier("b", 2, 50ms).what().find("1 of 2") != std::string_view::npos);
  LogFile caller = LogFile::open(path).value();
  (void)write_caller(caller, 2);  // and no mark: it died between the two
  REQUIRE(store->barrier("b", 2, 50ms).what().find("1 of 2") != std::string_view::npos);
}

TEST_CASE("records are read back, and only the last is taken back") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  LogFile writer = LogFile::open(path).value();
  LogFile reader = LogFile::open(path).value();
  REQUIRE(writer.try_lock().value());
  REQUIRE_FALSE(reader.try_lock().value());
  require_ok(writer.look());
  REQUIRE(writer.is_empty());
  const Strings bodies = {"", "a", std::string(3'000'000, 'b'), "c"};
  for (const std::string& body : bodies) REQUIRE(writer.append(body).ok());
  REQUIRE(writer.append("taken back").ok());
  writer.take_back();
  REQUIRE(writer.append("d").ok());
  writer.unlock();

  REQUIRE(reader.try_lock().value());
  require_ok(reader.look());
  for (const std::string& body : {bodies[0], bodies[1], bodies[2], bodies[3], std::string("d")}) {
    const auto record = reader.next().value();
    REQUIRE(record.has_value());
    REQUIRE(record->body == body);
  }
  REQUIRE_FALSE(reader.next().value().has_value());
  REQUIRE(reader.position() == writer.position());
}

TEST_CASE("marks are seen by others until they are taken away or their owner goes") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/log";
  const LogFile looker = LogFile::open(path).value();
  {
    LogFile owner = LogFile::open(path).value();
    require_ok(owner.mark(100));
    require_ok(owner.mark(101));
    REQUIRE(looker.is_marked(100).value());
    REQUIRE_FALSE(looker.is_marked(99).value());
    owner.unmark(100);
    REQUIRE_FALSE(looker.is_marked(100).value());
    REQUIRE(looker.is_marked(101).value());
  }
  REQUIRE_FALSE(looker.is_marked(101).value());
}
