// How far apart the first two processors are that this may use: microseconds that a cache line
// takes from one to the other, best of several rounds. On virtual machines it changes while one
// measures.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include <sched.h>

namespace {

constexpr int trips = 2000;
constexpr int rounds = 20;

std::vector<std::size_t> processors() {
  cpu_set_t allowed;
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  std::vector<std::size_t> found;
  for (std::size_t each = 0; each < CPU_SETSIZE; ++each) {
    if (CPU_ISSET(each, &allowed)) found.push_back(each);
  }
  return found;
}

void stay_on(std::size_t processor) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(processor, &only);
  ::sched_setaffinity(0, sizeof only, &only);
}

}  // namespace

int main() {
  const std::vector<std::size_t> all = processors();
  if (all.size() < 2) return std::puts("0") < 0 ? 1 : 0;
  alignas(64) std::atomic<int> turn = 0;
  std::thread other([&] {
    stay_on(all[1]);
    for (int i = 0; i < trips * rounds; ++i) {
      while (turn.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      turn.store(2 * i + 2, std::memory_order_release);
    }
  });
  stay_on(all[0]);
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = round * trips; i < (round + 1) * trips; ++i) {
      turn.store(2 * i + 1, std::memory_order_release);
      while (turn.load(std::memory_order_acquire) != 2 * i + 2) {
      }
    }
    const std::chrono::duration<double, std::micro> taken =
        std::chrono::steady_clock::now() - begin;
    best = std::min(best, taken.count() / (2 * trips));
  }
  other.join();
  std::printf("%.3f\n", best);
}
