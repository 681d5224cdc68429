#include "measure.hpp"

#include <algorithm>
#include <cstddef>

namespace hocket::bench {
namespace {

double seconds_of(const std::function<void()>& work, long calls) {
  const Clock& clock = monotonic_clock();
  const Instant start = clock.now();
  for (long i = 0; i < calls; ++i) work();
  return std::chrono::duration<double>(clock.now() - start).count();
}

/// How many calls take at least `batch`; warms the caches on the way.
long calls_for(const std::function<void()>& work, double batch) {
  long calls = 1;
  while (seconds_of(work, calls) < batch) calls *= 2;
  return calls;
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::vector<Measured> measure(const std::vector<std::function<void()>>& works,
                              const MeasureOptions& options) {
  const double batch = std::chrono::duration<double>(options.batch).count();
  std::vector<long> calls;
  for (const auto& work : works) calls.push_back(calls_for(work, batch));

  std::vector<std::vector<double>> seconds(works.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (std::size_t i = 0; i < works.size(); ++i) {
      seconds[i].push_back(seconds_of(works[i], calls[i]) / static_cast<double>(calls[i]));
    }
  }
  std::vector<Measured> measured;
  for (const std::vector<double>& of_one : seconds) {
    measured.push_back({.median = median(of_one), .best = std::ranges::min(of_one)});
  }
  return measured;
}

}  // namespace hocket::bench
