#include "record/recorder.hpp"

#include <chrono>
#include <cstdint>
#include <string>

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
    auto made = Recorder::open(
        {.world = 7, .rank = 3, .size = 4, .host = "node1", .folder = folder_.path()});
    REQUIRE(made.ok());
    recorder_ = std::move(*made);
  }
  Recorder& operator*() { return *recorder_; }
  Recorder* operator->() { return recorder_.get(); }
  void close() { recorder_ = nullptr; }

  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  [[nodiscard]] std::vector<std::string> files() const { return *trace::dumps_in(folder_.path()); }
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
  CHECK(dump.host() == "node1");
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
  CHECK(dump.header.begun == record::entries_kept + 1);
  CHECK(dump.header.totals[0].failed == 0);
}

TEST_CASE("communicators are known as long as there is room, and the first failure counts") {
  Recorded recorder;
  recorder->add_group(0, 3, 4);
  for (std::uint32_t id = 1; id < 2 * record::groups_kept; ++id) {
    recorder->add_group(id, 0, 2);
    recorder->remove_group(id);
  }
  const auto& groups = recorder.read().header.groups;
  CHECK(groups[0].id == 0);
  CHECK(groups[0].is_open == 1);
  CHECK(groups[0].rank == 3);
  recorder->note_failure("rank 2 has died");
  recorder->note_failure("something else");
  CHECK(std::string(recorder.read().header.failure.data()) == "rank 2 has died");
  recorder->note_failure(std::string(5000, 'x'));
}

TEST_CASE("a process that joins two worlds has two files") {
  Recorded recorder;
  const std::uint64_t operation = recorder->begin({.number = 1});
  auto other = Recorder::open(
      {.world = 8, .rank = 3, .size = 4, .host = "node1", .folder = recorder.folder()});
  REQUIRE(other.ok());
  CHECK(recorder.files().size() == 2);
  recorder->end(operation, at(1us), true);  // its memory is still there
  const auto worlds = trace::worlds_of(
      {*trace::read_dump(recorder.files()[0]), *trace::read_dump(recorder.files()[1])});
  CHECK(worlds.size() == 2);
}

TEST_CASE("a recorder needs no folder, but one that is named must be there") {
  auto in_memory = Recorder::open({});
  CHECK(in_memory.ok());
  CHECK_FALSE(Recorder::open({.folder = "/no/such/folder"}).ok());
}

}  // namespace hocket::record
