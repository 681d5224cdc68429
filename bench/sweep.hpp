// Collectives measured over a range of sizes, and each result checked.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "trial.hpp"

namespace hocket::bench {

struct Sweep {
  std::vector<Case> cases = {};
  std::vector<std::uint64_t> sizes = {};  // bytes of the whole
  std::size_t iterations = 0;             // 0: as many as fit into `time`
  std::size_t warmups = 5;
  Duration time = std::chrono::milliseconds(200);
  bool checks = true;
};

/// What the ranks found together. Times are those of the slowest rank, in seconds.
struct Row {
  Case what = {};
  std::uint64_t bytes = 0;
  std::size_t count = 0;
  std::size_t iterations = 0;
  double mean = 0;
  double p50 = 0;
  double p99 = 0;
  double cpu = 0;           // of the rank that needs most, a call
  double wire_bytes = 0;    // of the host that sends most, a call
  std::uint64_t wrong = 0;  // elements, of all ranks and checks
};

/// Sizes from `first` to `last` by a factor, or by a step if that is not 0.
[[nodiscard]] std::vector<std::uint64_t> sizes_between(std::uint64_t first, std::uint64_t last,
                                                       std::uint64_t factor, std::uint64_t step);

/// Of sorted times, in seconds: the one that this share of all does not exceed.
[[nodiscard]] double quantile(const std::vector<Duration>& sorted, double share);

/// The same rows on all ranks; each is handed out as soon as it is there. Says before what it is
/// going to measure.
void run(Communicator& world, const Sweep& sweep, const std::function<void(const Row&)>& on_row,
         const std::function<void(const std::string&)>& on_progress);

}  // namespace hocket::bench
