#include "record/recorder.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"
#include "trace/dump.hpp"

namespace hocket::record {
namespace {

using namespace std::chrono_literals;
using testing::TemporaryFolder;
using trace::Dump;

Instant at(Duration time) { return Instant(time); }

/// A recorder whose file is read as `hocket trace` reads it.
class Recorded {
 public:
  Recorded() { open(); }

  void open() {
    auto made = Recorder::open({.world = 7, .rank = 3, .size = 4, .folder = folder_.path()});
    REQUIRE(made.ok());
    recorder_ = std::move(*made);
  }
  Recorder& operator*() { return *recorder_; }
  Recorder* operator->() { return recorder_.get(); }
  void close() { recorder_ = nullptr; }

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  [[nodiscard]] std::vector<std::string> files() const {
    return *trace::record_files_in(folder_.path());
  }
  [[nodiscard]] Dump read() const {
    auto dump = trace::read_dump(files().front());
    REQUIRE(dump.ok());
    return *dump;
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Recorder> recorder_;
};

}  // namespace

TEST_CASE("a file of records says whose they are") {
  Recorded recorder;
  const Dump dump = recorder.read();
  CHECK(dump.rank() == 3);
  CHECK(dump.header.size == 4);
  CHECK(dump.header.world == 7);
  CHECK_FALSE(dump.host().empty());
  CHECK(dump.life == Life::running);
  CHECK(dump.entries.empty());
  recorder.close();
  CHECK(recorder.read().life == Life::left);
}

TEST_CASE("an operation is recorded from its call to its end") {
  Recorded recorder;
  const std::uint64_t operation = recorder->begin({.kind = 1,
                                                   .communicator = 5,
                                                   .number = 12,
                                                   .tag = 99,
                                                   .bytes = 1000,
                                                   .begun = at(10us),
                                                   .state = State::queued});
  CHECK(recorder.read().entries.at(0).state == State::queued);
  recorder->start(operation);
  recorder->note_arrival(operation, at(20us));
  recorder->note_wait(operation, 4, 2);
  const Entry running = recorder.read().entries.at(0);
  CHECK(running.state == State::running);
  CHECK(running.communicator == 5);
  CHECK(running.number == 12);
  CHECK(running.tag == 99);
  CHECK(running.begun == 10'000);
  CHECK(running.arrived == 20'000);
  CHECK(running.step == 4);
  CHECK(running.peer == 2);
  recorder->end(operation, at(50us), true);
  const Dump dump = recorder.read();
  CHECK(dump.entries.at(0).state == State::done);
  CHECK(dump.entries.at(0).ended == 50'000);
  CHECK(dump.header.totals[1].done == 1);
  CHECK(dump.header.totals[1].bytes == 1000);
  CHECK(dump.header.totals[1].nanoseconds == 40'000);
  recorder->end(recorder->begin({.kind = 1}), at(1us), false);
  CHECK(recorder.read().header.totals[1].failed == 1);
}

TEST_CASE("the last operations are kept, and one that was forgotten changes none of them") {
  Recorded recorder;
  const std::uint64_t first = recorder->begin({.number = 1});
  for (std::uint64_t number = 2; number <= record::entries_kept + 1; ++number) {
    recorder->end(recorder->begin({.number = number}), at(1us), true);
  }
  recorder->note_wait(first, 1, 1);
  recorder->end(first, at(1us), false);
  const Dump dump = recorder.read();
  REQUIRE(dump.entries.size() == record::entries_kept);
  CHECK(dump.entries.front().number == 2);
  CHECK(dump.entries.back().number == record::entries_kept + 1);
  CHECK(dump.header.operation_count == record::entries_kept + 1);
  CHECK(dump.header.totals[0].failed == 0);
}

TEST_CASE("communicators are known as long as there is room") {
  Recorded recorder;
  recorder->add_group(0, 3, 4);
  for (std::uint64_t id = 1; id < 2 * record::groups_kept; ++id) {
    recorder->add_group(id, 0, 2);
    recorder->remove_group(id);
  }
  for (std::uint64_t id = 1; id < 2 * record::groups_kept; ++id) recorder->add_group(id, 1, 2);
  const auto& groups = recorder.read().header.groups;
  CHECK(groups[0].id == 0);
  CHECK(groups[0].is_open == 1);
  CHECK(groups[0].rank == 3);
  CHECK(groups.back().id == record::groups_kept - 1);
}

TEST_CASE("the first failure counts, cut to the room that there is") {
  Recorded recorder;
  recorder->note_failure(std::string(5000, 'x'));
  recorder->note_failure("something else");
  CHECK(std::string(recorder.read().header.failure.data()) ==
        std::string(sizeof(Header::failure) - 1, 'x'));
}

TEST_CASE("files that are not what they should be are refused or sorted out") {
  Recorded recorder;
  recorder->begin({.number = 1, .begun = at(-5us)});
  recorder->begin({.kind = 77, .number = 2});
  recorder->begin({.number = 3});
  CHECK(recorder.read().entries.size() == 1);
  const std::string copy = recorder.folder() + "/copy";
  std::filesystem::copy_file(recorder.files().front(), copy);
  CHECK(trace::read_dump(copy)->life == Life::unknown);
  const auto damage = [&](std::size_t position, std::uint32_t value) {
    std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(position));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  damage(offsetof(Header, size), UINT32_MAX);
  CHECK_FALSE(trace::read_dump(copy).ok());
  damage(offsetof(Header, size), 4);
  CHECK(trace::read_dump(copy).ok());
  damage(offsetof(Header, rank), 4);
  CHECK_FALSE(trace::read_dump(copy).ok());
  std::filesystem::resize_file(copy, 100);
  CHECK_FALSE(trace::read_dump(copy).ok());
}

TEST_CASE("what HOCKET_TRACE may say") {
  CHECK(parse_wish("").is_on);
  CHECK(parse_wish("on").folder.empty());
  CHECK(parse_wish("1").folder.empty());
  CHECK_FALSE(parse_wish("off").is_on);
  CHECK_FALSE(parse_wish("0").is_on);
  CHECK(parse_wish("here").folder == "here");
}

TEST_CASE("a process that joins two worlds has two files") {
  Recorded recorder;
  const std::uint64_t operation = recorder->begin({.number = 1});
  auto other = Recorder::open({.world = 8, .rank = 3, .size = 4, .folder = recorder.folder()});
  REQUIRE(other.ok());
  CHECK(recorder.files().size() == 2);
  recorder->end(operation, at(1us), true);  // its memory is still there
  const auto worlds = trace::worlds_of(
      {*trace::read_dump(recorder.files()[0]), *trace::read_dump(recorder.files()[1])});
  CHECK(worlds.size() == 2);
}

TEST_CASE("a recorder needs no folder, and makes the one that is named") {
  TemporaryFolder folder;
  const std::string inside = folder.path() + "/not/there/yet";
  CHECK(Recorder::open({}).ok());
  CHECK(Recorder::open({.folder = inside}).ok());
  CHECK(trace::record_files_in(inside)->size() == 1);
  CHECK_FALSE(Recorder::open({.folder = "/dev/null/folder"}).ok());
}

}  // namespace hocket::record
