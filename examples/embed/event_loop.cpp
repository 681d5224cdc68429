// An event loop that has other work to do: a timer, and sums that Hocket makes in the background.
// The loop sleeps in poll() until one of them has something. Run it on several ranks:
//
//   g++ -std=c++20 event_loop.cpp $(pkg-config --cflags --libs hocket) -o event_loop
//   hocket run -n 2 -- ./event_loop
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hocket/hocket.hpp"

namespace {

constexpr int rounds = 100;

class Loop {
 public:
  explicit Loop(hocket::Communicator world) : world_(std::move(world)) {
    const itimerspec every_millisecond = {.it_interval = {0, 1'000'000}, .it_value = {0, 1}};
    ::timerfd_settime(timer_, 0, &every_millisecond, nullptr);
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  ~Loop() { ::close(timer_); }

  void run() {
    start();
    pollfd sources[] = {{timer_, POLLIN, 0}, {queue_.fd(), POLLIN, 0}};
    while (rounds_done_ < rounds) {
      ::poll(sources, 2, -1);
      if (sources[0].revents != 0) on_timer();
      // The descriptor says that there is something; take all of it.
      while (const auto end = queue_.next(std::chrono::nanoseconds(0))) on_sum(*end);
    }
    std::printf("rank %d: %d sums, the last of %g, and %llu ticks of the timer\n", world_.rank(),
                rounds_done_, static_cast<double>(values_[0]),
                static_cast<unsigned long long>(ticks_));
  }

 private:
  /// Starts a sum. Its memory stays borrowed until the queue has reported it, so the Work need not
  /// be kept.
  void start() {
    values_.assign(10'000, static_cast<float>(world_.rank() + 1));
    (void)world_.start(hocket::Collective::all_reduce(
        values_, {}, {.queue = &queue_, .queue_tag = std::uint64_t(rounds_done_)}));
  }

  void on_sum(const hocket::Completion& end) {
    if (!end.status.ok()) hocket::throw_error(end.status);  // says who, what and where
    if (++rounds_done_ < rounds) start();
  }

  void on_timer() {
    std::uint64_t ticks = 0;
    if (::read(timer_, &ticks, sizeof ticks) == sizeof ticks) ticks_ += ticks;
  }

  hocket::Communicator world_;
  std::vector<float> values_;
  hocket::CompletionQueue queue_;  // destroyed before values_; waits until nothing is in flight
  int timer_ = ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
  int rounds_done_ = 0;
  std::uint64_t ticks_ = 0;
};

}  // namespace

int main() {
  try {
    Loop(hocket::join()).run();
  } catch (const hocket::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
