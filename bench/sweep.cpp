#include "sweep.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "ranks.hpp"
#include "usage.hpp"

namespace hocket::bench {
namespace {

constexpr std::size_t iterations_min = 5;
constexpr std::size_t iterations_max = 100'000;

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// So many on every rank, by how long the last calls of the warm-up took.
std::size_t choose_iterations(Communicator& world, const Sweep& sweep, Trial& trial) {
  std::vector<Duration> times = trial.time(sweep.warmups);
  if (sweep.iterations > 0) return sweep.iterations;
  if (times.empty()) times = trial.time(1);
  std::ranges::sort(times);
  const double call = max_over_ranks(world, quantile(times, 0.5));
  const auto fitting = static_cast<std::size_t>(seconds(sweep.time) / std::max(call, 1e-9));
  return std::clamp(fitting, iterations_min, iterations_max);
}

void take_times(Communicator& world, std::vector<Duration> times, const Usage& used, Row& row) {
  std::ranges::sort(times);
  const Duration all = std::accumulate(times.begin(), times.end(), Duration::zero());
  std::array<double, 5> ours = {seconds(all) / static_cast<double>(times.size()),
                                quantile(times, 0.5), quantile(times, 0.99), used.cpu_seconds,
                                used.wire_bytes};
  world.all_reduce(ours, ReduceOp::max);
  row.mean = ours[0];
  row.p50 = ours[1];
  row.p99 = ours[2];
  row.cpu = ours[3];
  row.wire_bytes = ours[4];
}

Row measure(Communicator& world, const Sweep& sweep, const Case& what, std::size_t count) {
  Trial trial(world, what, count);
  std::uint64_t wrong = sweep.checks ? trial.check() : 0;
  Row row = {.what = what,
             .bytes = bytes_of(what, count, world.size()),
             .count = count,
             .iterations = choose_iterations(world, sweep, trial)};
  const Usage before = Usage::now();
  std::vector<Duration> times = trial.time(row.iterations);
  const Usage used = Usage::now().since(before, static_cast<double>(times.size()));
  take_times(world, std::move(times), used, row);
  if (sweep.checks) {
    wrong += trial.check();
    if (trial.differs()) ++wrong;
    row.wrong = sum_over_ranks(world, wrong);
  }
  return row;
}

}  // namespace

double quantile(const std::vector<Duration>& sorted, double share) {
  const auto index = static_cast<std::size_t>(share * static_cast<double>(sorted.size()));
  return seconds(sorted[std::min(index, sorted.size() - 1)]);
}

std::vector<std::uint64_t> sizes_between(std::uint64_t first, std::uint64_t last,
                                         std::uint64_t factor, std::uint64_t step) {
  std::vector<std::uint64_t> sizes = {first};
  while (step > 0 ? last - sizes.back() >= step : last / factor >= std::max(sizes.back(), 1UL)) {
    sizes.push_back(step > 0 ? sizes.back() + step : std::max(sizes.back() * factor, 1UL));
  }
  return sizes;
}

void run(Communicator& world, const Sweep& sweep, const std::function<void(const Row&)>& on_row,
         const std::function<void(const std::string&)>& on_progress) {
  for (const Case& what : sweep.cases) {
    std::vector<std::size_t> counts;
    for (const std::uint64_t bytes : sweep.sizes) {
      counts.push_back(count_of(what, bytes, world.size()));
    }
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    for (const std::size_t count : counts) {
      on_progress(fmt::format("{} of {}, {}", name(what.kind), name(what.type),
                              format_size(bytes_of(what, count, world.size()))));
      on_row(measure(world, sweep, what, count));
    }
  }
}

}  // namespace hocket::bench
