// A rank whose operation failed, or that has freed a communicator, and that calls nothing any more:
// others that dial it for that communicator are told at once. Two ranks run it. Prints what is
// wrong, and fails then.
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"

namespace {

using namespace std::chrono_literals;
using hocket::Collective;
using hocket::Communicator;
using hocket::monotonic_clock;

/// Of an idle machine it is far less.
constexpr auto told_within = 3s;
constexpr auto patience = 30s;
/// More than connections hold: what rank 0 had sent in full would still be received.
constexpr std::size_t count = std::size_t{8} << 20;

/// A mark that one rank sets and another sees, without any call of the library.
class Mark {
 public:
  explicit Mark(const std::string& name)
      : file_(std::filesystem::temp_directory_path() /
              fmt::format("hocket-answers-{}-{}", ::getppid(), name)) {}
  void set() const { std::ofstream(file_) << "set"; }
  /// False when the other did not set it in time.
  [[nodiscard]] bool await() const {
    const auto end = monotonic_clock().now() + patience;
    while (!std::filesystem::exists(file_)) {
      if (monotonic_clock().now() > end) return false;
      std::this_thread::sleep_for(5ms);
    }
    std::filesystem::remove(file_);
    return true;
  }

 private:
  std::filesystem::path file_;
};

hocket::Status sum(Communicator& of, hocket::Duration timeout) {
  std::vector<float> values(count);
  try {
    of.run(Collective::all_reduce(values, values, hocket::ReduceOp::sum, {.timeout = timeout}));
  } catch (const hocket::Error& error) {
    return error.status();
  }
  return {};
}

/// Rank 0 ends a communicator, on whose channels it has never heard of rank 1, and then sleeps.
bool tells_of(Communicator& world, const std::string& name, bool fails) {
  const Mark ended(name + "-ended");
  const Mark told(name + "-told");
  Communicator part = world.dup();
  if (world.rank() == 0) {
    const bool is_right = !fails || sum(part, 300ms).code() == hocket::StatusCode::timeout;
    if (!fails) part = {};
    ended.set();
    return told.await() && is_right;
  }
  if (!ended.await()) return false;
  const auto begin = monotonic_clock().now();
  const hocket::Status status = sum(part, patience);
  const auto time = monotonic_clock().now() - begin;
  told.set();
  fmt::print("{}: told after {:.3f} s: {}\n", name, std::chrono::duration<double>(time).count(),
             status.to_string());
  // Rank 0 gave up because this rank was late, which is the cause on both; or has left.
  const auto code = fails ? hocket::StatusCode::timeout : hocket::StatusCode::peer_lost;
  return status.code() == code && status.peer() == (fails ? 1 : 0) && time < told_within;
}

}  // namespace

int main() {
  Communicator world = hocket::join();
  bool is_right = true;
  for (const bool fails : {true, false}) {
    const std::string name = fails ? "failed" : "freed";
    for (const char* const time : {"-first", "-second"}) {
      if (tells_of(world, name + time, fails)) continue;
      is_right = false;
      fmt::print("WRONG: rank {}: {}{}\n", world.rank(), name, time);
    }
  }
  world.barrier();
  return is_right ? 0 : 1;
}
