// A rank that is late, twice as long as a host may leave something unanswered
// (HOCKET_HOST_TIMEOUT), is not lost: its host answers. Two ranks run it; with the argument "rails"
// each has two networks. Prints what is wrong, and fails then.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/environment.hpp"
#include "base/text.hpp"
#include "net/silence.hpp"

namespace {

using hocket::Communicator;

constexpr int timeouts_late = 2;
constexpr std::size_t sizes[] = {8, 64 << 10, 4 << 20, 64 << 20};

/// As if each rank were a host of its own, with two networks.
void make_rails() {
  const int rank = static_cast<int>(
      hocket::parse_integer(hocket::process_environment().get("RANK")).value_or(0));
  const std::string rails = fmt::format("127.0.0.{},127.0.1.{}", rank + 1, rank + 1);
  ::setenv("HOCKET_TCP_INTERFACES", rails.c_str(), 1);
}

bool is_all(const std::vector<float>& values, float wanted) {
  for (const float each : values) {
    if (each != wanted) return false;
  }
  return true;
}

/// The last rank comes late to the operation, which gives `wanted` in every place.
template <class Operation>
bool runs_late(Communicator& world, const char* name, std::size_t bytes, float wanted,
               Operation operation) {
  std::vector<float> values(bytes / sizeof(float), static_cast<float>(world.rank() + 1));
  world.barrier();
  if (world.rank() == world.size() - 1) {
    std::this_thread::sleep_for(timeouts_late * hocket::net::host_timeout());
  }
  try {
    operation(values);
  } catch (const std::exception& error) {
    fmt::print("WRONG: {} of {} bytes: {}\n", name, bytes, error.what());
    return false;
  }
  if (is_all(values, wanted)) return true;
  fmt::print("WRONG: {} of {} bytes gives other values\n", name, bytes);
  return false;
}

}  // namespace

int main(int count, char** words) {
  if (count > 1 && std::string_view(words[1]) == "rails") make_rails();
  Communicator world = hocket::join();
  for (const std::size_t bytes : sizes) {
    const bool is_right =
        runs_late(world, "broadcast", bytes, 1, [&](auto& all) { world.broadcast(all, 0); }) &&
        runs_late(world, "all_reduce", bytes, 3, [&](auto& all) { world.all_reduce(all); });
    if (!is_right) return 1;
  }
  return 0;
}
