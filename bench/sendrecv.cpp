#include "sendrecv.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "exchange.hpp"
#include "measure.hpp"
#include "program/json.hpp"
#include "ranks.hpp"
#include "rows.hpp"
#include "sweep.hpp"
#include "sweep_options.hpp"

namespace hocket::bench {
namespace {

constexpr double seconds_of_each = 0.2;  // trips, and then windows
constexpr std::size_t warmups = 5;

struct Flow {
  std::uint64_t bytes = 0;
  int pairs = 0;
  std::size_t window = 0;
  double p50 = 0;  // of the slowest pair, in seconds
  double p99 = 0;
  double rate = 0;  // messages a second, of all pairs
  std::uint64_t wrong = 0;

  [[nodiscard]] double bandwidth() const { return rate * static_cast<double>(bytes) / 1e9; }
};

/// So many that they take the time that is asked for, if one takes so long.
std::size_t count_for(double seconds_of_one, std::size_t least) {
  const auto fitting = static_cast<std::size_t>(seconds_of_each / std::max(seconds_of_one, 1e-7));
  return std::clamp<std::size_t>(fitting, least, 100'000);
}

void take_trips(Communicator& world, Exchange& exchange, std::size_t asked_for, Flow& flow) {
  const auto slowest = [&](std::size_t count) {
    std::vector<Duration> times = exchange.time_trips(count);
    std::ranges::sort(times);
    std::array<double, 2> found = {};
    if (!times.empty()) found = {quantile(times, 0.5), quantile(times, 0.99)};
    world.all_reduce(found, ReduceOp::max);
    return found;
  };
  const double half = slowest(warmups)[0];
  const std::size_t count = asked_for > 0 ? asked_for : count_for(2 * half, 10);
  const auto [p50, p99] = slowest(count);
  flow.p50 = p50;
  flow.p99 = p99;
}

void take_stream(Communicator& world, Exchange& exchange, std::size_t asked_for, Flow& flow) {
  const auto slowest = [&](std::size_t windows) {
    const Duration ours = exchange.stream(windows);
    return max_over_ranks(world, std::chrono::duration<double>(ours).count());
  };
  const double one = slowest(1);
  const std::size_t windows = asked_for > 0 ? asked_for : count_for(one, 3);
  const auto messages = static_cast<double>(windows * exchange.window()) * flow.pairs;
  flow.rate = messages / slowest(windows);
}

Flow measure(Communicator& world, std::uint64_t bytes, const Sweep& sweep) {
  Exchange exchange(world, bytes);
  Flow flow = {.bytes = bytes, .pairs = exchange.pairs(), .window = exchange.window()};
  std::uint64_t wrong = exchange.check();
  take_trips(world, exchange, sweep.iterations, flow);
  take_stream(world, exchange, sweep.iterations, flow);
  wrong += exchange.check();
  flow.wrong = sum_over_ranks(world, wrong);
  return flow;
}

void print_flow_head(const Communicator& world) {
  const int pairs = world.size() / 2;
  fmt::print(
      "# hocket-bench {} sendrecv: {} pair{} of ranks, transport {}, {} processors\n"
      "# p50, p99: half of a trip there and back, of the slowest pair\n"
      "# stream: so many messages one way at once, then an empty one back; of all pairs together\n"
      "#\n#{:>11} {:>10} {:>10} {:>8} {:>12} {:>10} {:>7}\n"
      "#{:>11} {:>10} {:>10} {:>8} {:>12} {:>10}\n",
      version(), pairs, pairs == 1 ? "" : "s", world.transport(),
      std::thread::hardware_concurrency(), "size", "p50", "p99", "stream", "messages", "bandwidth",
      "#wrong", "(B)", "(us)", "(us)", "", "(1/s)", "(GB/s)");
}

void print_row(const Flow& row) {
  fmt::print("{:>12} {:>10.2f} {:>10.2f} {:>8} {:>12.0f} {:>10.3f} {:>7}\n", row.bytes, us(row.p50),
             us(row.p99), row.window, row.rate, row.bandwidth(), row.wrong);
}

program::Json to_json(const Flow& row) {
  return {{"bytes", row.bytes},
          {"pairs", row.pairs},
          {"window", row.window},
          {"p50_s", row.p50},
          {"p99_s", row.p99},
          {"messages_per_s", row.rate},
          {"bandwidth_gb_s", row.bandwidth()},
          {"wrong", row.wrong}};
}

/// Whether nothing was wrong.
bool measure_flows(Communicator world, const Sweep& sweep, const SweepOptions& options) {
  if (world.size() < 2) throw program::UsageError("--ranks", "messages need two ranks");
  const RowFormat<Flow> format = {"sendrecv", print_flow_head, print_row, to_json};
  return run_rows(world, sweep.sizes, options, format,
                  [&](std::uint64_t bytes) { return measure(world, bytes, sweep); });
}

}  // namespace

void add_sendrecv_command(program::Parser& program, const std::vector<std::string>& words) {
  // The program owns its sub-commands, and with this one the options.
  const auto options = std::make_shared<SweepOptions>();
  program::Parser& parser =
      program.add_command("sendrecv", "Messages between pairs of ranks: latency, bandwidth, rate");
  add_size_options(parser, *options);
  parser
      .add_option("-n,--iters", &options->iterations,
                  "Trips, and streams, of a size (as many as fit into 0.2 s)")
      .in_range(1, 1'000'000);
  add_world_options(parser, options->world);
  parser.add_flag("--json", &options->json, "Write one JSON document");
  parser.add_flag("--progress", &options->progress,
                  "Say on stderr what is measured, also where it is no terminal");
  parser.on_run([options, words] {
    const Sweep sweep = read_sweep(CollectiveKind::broadcast, *options);
    const bool is_right = measure_flows(join_world(options->world, words), sweep, *options);
    return is_right ? program::exit_success : program::exit_failure;
  });
}

}  // namespace hocket::bench
