#include "overlap.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/clock.hpp"
#include "measure.hpp"
#include "program/json.hpp"
#include "ranks.hpp"
#include "rows.hpp"
#include "sweep_options.hpp"
#include "trial.hpp"

namespace hocket::bench {
namespace {

constexpr std::size_t usual_iterations = 20;

/// Medians of the slowest rank, in seconds.
struct Overlap {
  std::uint64_t bytes = 0;
  double operation = 0;  // started, and waited for at once
  double work = 0;       // that of the rank, alone
  double both = 0;       // started; work; waited for
  std::uint64_t wrong = 0;

  /// The share of the shorter of the two that the longer one hides.
  [[nodiscard]] double hidden() const {
    const double shorter = std::min(operation, work);
    return shorter <= 0 ? 0 : std::clamp((operation + work - both) / shorter, 0.0, 1.0);
  }
};

/// Work of a rank that touches no memory but registers: so many steps that follow from each other.
std::uint64_t compute(std::uint64_t steps) {
  volatile std::uint64_t number = 1;
  for (std::uint64_t i = 0; i < steps; ++i) number = number * 0x5851f42d4c957f2d + 1;
  return number;
}

/// The median of what ranks that begin together take, of the slowest of them.
template <class Call>
double seconds_a_call(Communicator& world, std::size_t calls, Call call) {
  const Clock& clock = monotonic_clock();
  std::vector<double> seconds;
  for (std::size_t i = 0; i < calls; ++i) {
    world.barrier();
    const Instant start = clock.now();
    call();
    seconds.push_back(std::chrono::duration<double>(clock.now() - start).count());
  }
  return max_over_ranks(world, median(seconds));
}

Overlap measure(Communicator& world, const Case& what, std::size_t count, std::size_t calls) {
  Trial trial(world, what, count);
  Overlap result = {.bytes = bytes_of(what, count, world.size())};
  result.wrong = trial.check();
  result.operation = seconds_a_call(world, calls, [&] { trial.start().wait(); });
  constexpr std::uint64_t sample = 100'000;
  const double step = seconds_a_call(world, calls, [] { compute(sample); }) / sample;
  const auto steps = static_cast<std::uint64_t>(result.operation / step);
  result.work = seconds_a_call(world, calls, [&] { compute(steps); });
  result.both = seconds_a_call(world, calls, [&] {
    Work work = trial.start();
    compute(steps);
    work.wait();
  });
  result.wrong = sum_over_ranks(world, result.wrong + trial.check());
  return result;
}

void print_overlap_head(const Communicator& world) {
  fmt::print(
      "# hocket-bench {} overlap: all_reduce by {} ranks, transport {}, {} processors\n"
      "# medians of the slowest rank. both: started, as much work as the operation takes, waited "
      "for\n#\n#{:>11} {:>14} {:>12} {:>12} {:>9} {:>7}\n#{:>11} {:>14} {:>12} {:>12} {:>9}\n",
      version(), world.size(), world.transport(), std::thread::hardware_concurrency(), "size",
      "operation", "work", "both", "hidden", "#wrong", "(B)", "(us)", "(us)", "(us)", "(%)");
}

void print_row(const Overlap& row) {
  fmt::print("{:>12} {:>14.2f} {:>12.2f} {:>12.2f} {:>9.0f} {:>7}\n", row.bytes, us(row.operation),
             us(row.work), us(row.both), row.hidden() * 100, row.wrong);
}

program::Json to_json(const Overlap& row) {
  return {{"bytes", row.bytes}, {"operation_s", row.operation}, {"work_s", row.work},
          {"both_s", row.both}, {"hidden", row.hidden()},       {"wrong", row.wrong}};
}

/// Whether nothing was wrong.
bool measure_overlaps(Communicator world, const Sweep& sweep, const SweepOptions& options) {
  const Case& what = sweep.cases.front();
  const RowFormat<Overlap> format = {"overlap", print_overlap_head, print_row, to_json};
  return run_rows(world, sweep.sizes, options, format, [&](std::uint64_t bytes) {
    return measure(world, what, count_of(what, bytes, world.size()), sweep.iterations);
  });
}

}  // namespace

void add_overlap_command(program::Parser& program, const std::vector<std::string>& words) {
  // The program owns its sub-commands, and with this one the options.
  const auto options = std::make_shared<SweepOptions>();
  program::Parser& parser = program.add_command(
      "overlap", "How much of an all_reduce is hidden behind what ranks compute meanwhile");
  options->begin = "4K";
  options->iterations = usual_iterations;
  add_size_options(parser, *options);
  parser.add_option("-n,--iters", &options->iterations, "Calls of a size")
      .in_range(1, 1'000'000)
      .with_default();
  add_world_options(parser, options->world);
  parser.add_flag("--json", &options->json, "Write one JSON document");
  parser.add_flag("--progress", &options->progress,
                  "Say on stderr what is measured, also where it is no terminal");
  parser.on_run([options, words] {
    const Sweep sweep = read_sweep(CollectiveKind::all_reduce, *options);
    const bool is_right = measure_overlaps(join_world(options->world, words), sweep, *options);
    return is_right ? program::exit_success : program::exit_failure;
  });
}

}  // namespace hocket::bench
