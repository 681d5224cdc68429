// A rank that works until something happens to it or to another, and then says what it was told.
// All ranks of a world run it; the test that starts them does harm to one.
//
// rank WORK [--count N] [--idle] [--ballast MIB] [--fork]
//   WORK       an operation, "messages", "mixed": all of them in turn, or "nothing"
//   --idle     every second rank waits for a message that never comes, and the others work
//   --ballast  memory that the process has written to
//   --fork     a child lives beside it
//
// It prints "ready RANK PID"; then "told TIME CODE STEP OPERATION" and the lines of the error; and
// "wrong …" for a result that is none, or memory that was written to behind the error.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <unistd.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::CollectiveKind;
using hocket::Communicator;
using hocket::DataType;
using hocket::ReduceOp;

struct Settings {
  std::string_view work = "mixed";
  std::size_t count = 64;
  std::size_t ballast_mib = 0;
  bool is_idle = false;
  bool forks = false;
};

Settings read(std::span<char* const> words) {
  Settings settings;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--idle") {
      settings.is_idle = true;
    } else if (word == "--fork") {
      settings.forks = true;
    } else if (word == "--count") {
      settings.count = std::strtoul(words[++i], nullptr, 10);
    } else if (word == "--ballast") {
      settings.ballast_mib = std::strtoul(words[++i], nullptr, 10);
    } else {
      settings.work = word;
    }
  }
  return settings;
}

/// Works on one communicator.
class Worker {
 public:
  Worker(Communicator& group, std::size_t count)
      : group_(group),
        size_(static_cast<std::size_t>(group.size())),
        count_(count),
        in_(count * size_),
        out_(count * size_) {}

  void work(std::string_view kind, std::uint64_t turn) {
    if (kind == "mixed") return work(kinds[turn % std::size(kinds)], turn);
    if (kind == "messages") return pass_on();
    if (kind == "nothing") return std::this_thread::sleep_for(1h);
    for (int i = 0; i <= static_cast<int>(CollectiveKind::exscan); ++i) {
      if (name(static_cast<CollectiveKind>(i)) == kind) return run(static_cast<CollectiveKind>(i));
    }
    std::printf("wrong: there is no \"%.*s\"\n", static_cast<int>(kind.size()), kind.data());
    std::exit(2);
  }

  /// Whether nothing writes to the memory any more.
  [[nodiscard]] bool is_left_alone() {
    std::fill(out_.begin(), out_.end(), -1.F);
    std::this_thread::sleep_for(50ms);
    return std::ranges::all_of(out_, [](float each) { return each == -1.F; });
  }

 private:
  static constexpr std::string_view kinds[] = {
      "all_reduce", "all_gather", "reduce_scatter", "broadcast", "messages", "all_to_all",
      "reduce",     "barrier",    "gather",         "scatter",   "scan",     "exscan"};

  void run(CollectiveKind kind) {
    std::fill(in_.begin(), in_.end(), 1.F);
    std::fill(out_.begin(), out_.end(), 0.F);
    // What a root gives is what others get.
    const bool is_broadcast = kind == CollectiveKind::broadcast;
    if (is_broadcast && group_.rank() == 0) std::fill(out_.begin(), out_.end(), 1.F);
    group_.run({.kind = kind,
                .in = is_broadcast ? out_.data() : in_.data(),
                .out = out_.data(),
                .type = DataType::f32,
                .count = count_,
                .reduction = ReduceOp::sum});
    const bool is_root = group_.rank() == 0;
    const auto before = static_cast<float>(group_.rank());  // ranks
    switch (kind) {
      case CollectiveKind::all_reduce:
      case CollectiveKind::reduce_scatter:
        expect(static_cast<float>(size_));
        break;
      case CollectiveKind::reduce:
        if (is_root) expect(static_cast<float>(size_));
        break;
      case CollectiveKind::all_gather:
      case CollectiveKind::all_to_all:
      case CollectiveKind::scatter:
      case CollectiveKind::broadcast:
        expect(1.F);
        break;
      case CollectiveKind::gather:
        if (is_root) expect(1.F);
        break;
      case CollectiveKind::scan:
        expect(before + 1.F);
        break;
      case CollectiveKind::exscan:
        if (!is_root) expect(before);
        break;
      case CollectiveKind::barrier:
        break;
    }
  }

  /// Around in a ring.
  void pass_on() {
    const int size = group_.size();
    std::fill(in_.begin(), in_.end(), 1.F);
    std::fill(out_.begin(), out_.end(), 0.F);
    group_.sendrecv(
        hocket::Message::send(std::span<const float>(in_).first(count_),
                              (group_.rank() + 1) % size),
        hocket::Message::recv(std::span(out_).first(count_), (group_.rank() + size - 1) % size));
    expect(1.F);
  }

  void expect(float value) const {
    if (out_.front() == value && out_[count_ - 1] == value) return;
    std::printf("wrong: a success, and %g where %g should be\n", out_.front(), value);
  }

  Communicator& group_;
  const std::size_t size_;
  const std::size_t count_;
  std::vector<float> in_;
  std::vector<float> out_;
};

}  // namespace

int main(int argc, char** argv) {
  const Settings settings = read(std::span(argv, static_cast<std::size_t>(argc)));
  std::vector<std::byte> ballast(settings.ballast_mib << 20, std::byte{1});
  Communicator world = hocket::join();
  Communicator half = settings.is_idle ? world.split(world.rank() % 2) : world.dup();
  Communicator& group = settings.is_idle ? half : world;
  Worker worker(group, settings.count);
  if (settings.forks && ::fork() == 0) {
    ::close(STDOUT_FILENO);  // of which the end is awaited
    ::close(STDERR_FILENO);
    std::this_thread::sleep_for(30s);
    ::_exit(0);
  }
  worker.work("all_reduce", 0);
  std::printf("ready %d %d\n", world.rank(), ::getpid());
  std::fflush(stdout);
  try {
    float never = 0;
    if (settings.is_idle && world.rank() % 2 == 1) world.recv(std::span(&never, 1), 0);
    for (std::uint64_t turn = 0;; ++turn) worker.work(settings.work, turn);
  } catch (const hocket::Error& error) {
    std::printf("told %lld %s|%d|%s\n%s\n", static_cast<long long>(hocket::universal_time() / 1000),
                std::string(name(error.code())).c_str(), error.status().step(),
                std::string(error.operation()).c_str(), error.what());
  }
  if (!worker.is_left_alone()) std::printf("wrong: memory was written to behind the error\n");
  std::fflush(stdout);
  return ballast.empty() || ballast.back() == std::byte{1} ? 0 : 1;
}
