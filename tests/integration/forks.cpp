// What a rank of two does that forks, and what its children do; fork_test.py starts it. The first
// argument says what.
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.h"
#include "hocket/hocket.hpp"

#include "store/server.hpp"
#include "store/tcp_store.hpp"

namespace {

using namespace std::chrono_literals;

constexpr unsigned child_patience_s = 60;  // then it is killed, as it hangs
constexpr int forks = 100;

void require(bool holds, std::string_view what) {
  if (!holds) throw std::runtime_error(std::string(what));
}

bool is_child = false;

/// A child that does this and ends by exit(), as a program does. It must end well.
template <class Work>
void run_child(const Work& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  require(child >= 0, "fork");
  if (child == 0) {
    is_child = true;
    alarm(child_patience_s);
    try {
      work();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      std::exit(1);
    }
    std::exit(0);
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child, "waitpid");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0,
          fmt::format("the child ended with {:#x}", status));
}

/// Descriptors, and what they are of.
std::set<std::string> open_files() {
  std::set<std::string> found;
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string of = std::filesystem::read_symlink(each.path(), error).string();
    const bool is_the_list = of.find("/proc/") == 0;
    if (!is_the_list) found.insert(each.path().filename().string() + " " + of);
  }
  return found;
}

void require_refusal(std::string_view what, const std::function<void()>& call) {
  try {
    call();
  } catch (const hocket::InvalidArgument& error) {
    const std::string text = error.what();
    require(text.find("does not survive a fork") != std::string::npos, text);
    return;
  }
  throw std::runtime_error(fmt::format("{} went well in a child", what));
}

std::int64_t sum_of_ones(hocket::Communicator& group) {
  std::vector<std::int64_t> ones(1000, 1);
  group.all_reduce(std::span(ones));
  require(ones.front() == ones.back(), "the sum is not the same everywhere");
  return ones.front();
}

void join_own_world() {
  auto own = hocket::join({.url = "tcp://127.0.0.1:0?rank=0&size=1"});
  require(sum_of_ones(own) == 1, "the sum of a world of one");
}

// --- what the ranks do ---

/// Rank 0 has a child that lives on when it is killed itself; rank 1 waits for rank 0.
void be_orphaned() {
  auto world = hocket::join();
  world.barrier();
  if (world.rank() == 0) {
    int ready[2] = {-1, -1};
    require(pipe(ready) == 0, "pipe");
    const pid_t child = fork();
    if (child == 0) {
      (void)!write(ready[1], "", 1);
      sleep(child_patience_s);
      _exit(0);
    }
    char byte = 0;
    require(read(ready[0], &byte, 1) == 1, "the child does not run");
    std::printf("child %d\n", child);
    std::fflush(stdout);
    sleep(child_patience_s);
    return;
  }
  try {
    world.barrier();
  } catch (const hocket::PeerLost& error) {
    std::printf("lost: %s\n", error.what());
  }
}

struct Inherited {
  hocket::Communicator world;
  std::optional<hocket::Communicator> part;
  std::optional<hocket::Prepared> prepared;
  std::optional<hocket::Work> work;
  std::optional<hocket::Work> ended;
};

void try_all(Inherited& it) {
  std::vector<std::int64_t> values(8, 1);
  const auto sum = hocket::Collective::all_reduce(std::span<const std::int64_t>(values),
                                                  std::span(values), {}, {});
  for (hocket::Communicator* group : {&it.world, &*it.part}) {
    require_refusal("run", [&] { group->run(sum); });
    require_refusal("start", [&] { (void)group->start(sum); });
    require_refusal("prepare", [&] { (void)group->prepare(sum); });
    require_refusal("barrier", [&] { group->barrier(); });
    require_refusal("split", [&] { (void)group->split(0); });
    require_refusal("dup", [&] { (void)group->dup(); });
    const int first[] = {0};
    require_refusal("group", [&] { (void)group->group(first); });
    require_refusal("send", [&] { group->send(std::span<const std::int64_t>(values), 1); });
    require_refusal("recv", [&] { group->recv(std::span(values), 1); });
  }
  for (hocket::Work* work : {&*it.work, &*it.ended}) {
    require_refusal("wait", [&] { work->wait(); });
    require_refusal("wait_for", [&] { (void)work->wait_for(1ms); });
    require_refusal("test", [&] { (void)work->test(); });
    require_refusal("received", [&] { (void)work->received(); });
    require_refusal("wait_any", [&] { (void)hocket::wait_any(std::span(work, 1)); });
    require_refusal("wait_all", [&] { hocket::wait_all(std::span(work, 1)); });
    require(work->status().code() == hocket::StatusCode::invalid_argument, "status");
  }
  require_refusal("Prepared::run", [&] { it.prepared->run(); });
  require_refusal("Prepared::start", [&] { (void)it.prepared->start(); });
}

/// Takes the numbers that the parent's descriptors had, so that closing them would show.
std::vector<int> open_many() {
  std::vector<int> files;
  for (int i = 0; i < 64; ++i) files.push_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return files;
}

void require_open(const std::vector<int>& files) {
  for (const int each : files) {
    require(fcntl(each, F_GETFD) >= 0, "a file of the child was closed");
    close(each);
  }
}

/// Each rank forks while another thread waits in an operation and one is under way. The child tries
/// everything, destroys what it inherited, and has a world of its own.
void call_in_child() {
  const std::set<std::string> before = open_files();
  Inherited it{.world = hocket::join(), .part = {}, .prepared = {}, .work = {}, .ended = {}};
  it.part = it.world.dup();
  const int other = 1 - it.world.rank();
  std::int64_t in = 0;
  std::int64_t out = 7;
  std::int64_t late = 0;
  std::vector<std::int64_t> values(8, 1);
  it.prepared = it.world.prepare(hocket::Collective::all_reduce(
      std::span<const std::int64_t>(values), std::span(values), {}, {}));
  it.ended = it.part->start(hocket::Message::send(std::span<const std::int64_t>(&out, 1), other));
  it.part->recv(std::span(&in, 1), other);
  it.ended->wait();
  it.work = it.part->start(hocket::Message::recv(std::span(&late, 1), other, 1));
  hocket::Communicator group = it.part->dup();
  std::thread waiting([&] { group.recv(std::span(&in, 1), other, 2); });
  std::this_thread::sleep_for(20ms);  // it may wait by then; all must be well in any case
  run_child([&] {
    require(open_files() == before, "the child has files of its parent");
    const std::vector<int> files = open_many();
    try_all(it);
    it.work.reset();
    it.ended.reset();
    it.prepared.reset();
    it.part.reset();
    it.world = {};
    require_open(files);
    join_own_world();
  });
  it.world.barrier();
  it.part->send(std::span<const std::int64_t>(&out, 1), other, 1);
  group.send(std::span<const std::int64_t>(&out, 1), other, 2);
  it.work->wait();
  waiting.join();
  require(late == out && in == out, "what was received");
  it.prepared->run();
  require(values.front() == 2, "the prepared sum");
}

/// The child's end as a whole: everything is destroyed by main's return, as it were.
void end_in_child() {
  auto world = hocket::join();
  require(sum_of_ones(world) == 2, "the first sum");
  hocket_comm* other = nullptr;
  require(hocket_join(nullptr, &other) == HOCKET_OK, hocket_last_error());
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    alarm(child_patience_s);
    require(hocket_barrier(other) == HOCKET_INVALID_ARGUMENT, "a call of C in a child");
    require(std::string_view(hocket_last_error()).find("does not survive a fork") !=
                std::string_view::npos,
            hocket_last_error());
    hocket_comm_free(other);
    return;
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child && status == 0, "the child did not end well");
  require(sum_of_ones(world) == 2, "the sum");
  require(hocket_barrier(other) == HOCKET_OK, hocket_last_error());
  hocket_comm_free(other);
}

/// A program that is spawned, of which atfork handlers know nothing, lists what it got.
void execute() {
  auto world = hocket::join();
  auto part = world.dup();
  part.barrier();
  std::string words[] = {"forks", "list"};
  char* const arguments[] = {words[0].data(), words[1].data(), nullptr};
  for (int i = 0; i < 20; ++i) {
    pid_t child = -1;
    require(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0,
            "posix_spawn");
    int status = 0;
    require(waitpid(child, &status, 0) == child && status == 0, "the program got files");
  }
  part.barrier();
}

void list() {
  for (const std::string& each : open_files()) {
    const int number = std::stoi(each);
    require(number <= STDERR_FILENO, each);
  }
}

/// Forks again and again while threads are in operations, and one joins worlds.
void fork_often() {
  auto world = hocket::join();
  std::atomic<bool> is_over = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, group = world.dup()]() mutable {
      // All ranks stop behind the same operation.
      for (bool goes_on = true; goes_on;) {
        std::int64_t wish = is_over ? 1 : 0;
        group.all_reduce(std::span(&wish, 1));
        goes_on = wish < group.size();
        (void)sum_of_ones(group);
      }
    });
  }
  threads.emplace_back([&] {
    while (!is_over) join_own_world();
  });
  for (int i = 0; i < forks; ++i) {
    run_child([&] {
      require_refusal("barrier", [&] { world.barrier(); });
      if (i % 10 == 0) join_own_world();
    });
  }
  is_over = true;
  for (std::thread& each : threads) each.join();
  world.barrier();
}

/// The store's server and client, as the launcher has them.
void use_store() {
  using namespace hocket::store;
  const std::set<std::string> before = open_files();
  auto server = Server::start({}).value();
  auto client = TcpStore::connect({.server = server->endpoint()}).value();
  require(client->set("key", "value").ok(), "set");
  std::thread waiting([&] { require(client->get("later").value() == "here", "get"); });
  // Until it waits, and neither it nor the server allocates: the locks of a sanitizer's allocator
  // do not survive a fork.
  std::this_thread::sleep_for(300ms);
  run_child([&] {
    require(open_files() == before, "the child has files of its parent");
    const std::vector<int> files = open_many();
    const auto status = client->ping();
    require(status.code() == hocket::StatusCode::invalid_argument, status.what());
    require(status.to_string().find("does not survive a fork") != std::string::npos, status.what());
    client->close(hocket::Status(hocket::StatusCode::aborted, "by the child"));
    client.reset();
    server.reset();
    require_open(files);
    const auto own = Server::start({}).value();
    require(TcpStore::connect({.server = own->endpoint()}).value()->ping().ok(), "own store");
  });
  require(client->set("later", "here").ok(), "the child closed the store");
  waiting.join();
}

}  // namespace

/// Asked by the leak sanitizer. What the threads of a parent were at when it forked is nobody's in
/// its child, and no leak.
extern "C" int __lsan_is_turned_off() { return is_child ? 1 : 0; }

int main(int argc, char** argv) {
  constexpr std::pair<std::string_view, void (*)()> all[] = {
      {"orphan", be_orphaned}, {"calls", call_in_child}, {"end", end_in_child}, {"exec", execute},
      {"list", list},          {"often", fork_often},    {"store", use_store},
  };
  const std::string_view wanted = argc > 1 ? argv[1] : "";
  try {
    for (const auto& [name, work] : all) {
      if (name != wanted) continue;
      work();
      return 0;
    }
    std::fprintf(stderr, "nothing is called so\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", std::string(wanted).c_str(), error.what());
  }
  return 1;
}
