#include "sim.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "choose/cost.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "page.hpp"
#include "plan/lookup.hpp"
#include "program/json.hpp"
#include "sim_network.hpp"
#include "sim_plot.hpp"
#include "sim_sweep.hpp"

namespace hocket::cli {
namespace {

using program::Json;

constexpr std::uint32_t ranks_max = 1 << 20;
constexpr std::uint64_t plot_steps_max = 1 << 21;  // it has many cells

struct SimOptions {
  std::string operation = "all_reduce";
  std::string algorithm = "all";
  NetworkOptions network = {};
  std::uint32_t ranks = 64;
  std::uint32_t root = 0;
  std::uint32_t pieces = 0;
  std::string bytes_min = "8";
  std::string bytes_max = "64M";
  std::uint32_t factor = 4;
  std::uint64_t steps_max = Sweep{}.steps_max;
  std::string plot;
  bool json = false;
  bool networks = false;
};

Result<std::vector<std::uint64_t>> read_sizes(const SimOptions& options) {
  const auto first = parse_size(options.bytes_min);
  const auto last = parse_size(options.bytes_max);
  if (!first || !last) {
    return refuse(fmt::format("{} is no size such as 8, 64K or 1G",
                              first ? options.bytes_max : options.bytes_min));
  }
  if (*first > *last) {
    return refuse(fmt::format("-b {} is more than -e {}", options.bytes_min, options.bytes_max));
  }
  if (options.factor < 2) return refuse("-f must be 2 or more");
  std::vector<std::uint64_t> sizes = {*first};
  while (*last / options.factor >= sizes.back() && sizes.back() > 0) {
    sizes.push_back(sizes.back() * options.factor);
  }
  return sizes;
}

Result<Sweep> read_sweep(const SimOptions& options) {
  if (options.ranks == 0 || options.ranks > ranks_max) {
    return refuse(fmt::format("-n {}: there must be 1 to {} ranks", options.ranks, ranks_max));
  }
  if (options.root >= options.ranks) {
    return refuse(fmt::format("--root {} is none of {} ranks", options.root, options.ranks));
  }
  auto operation = plan::look_up_operation(options.operation);
  if (!operation.ok()) return operation.status();
  auto algorithms =
      plan::look_up_algorithms(*operation, options.algorithm == "all" ? "" : options.algorithm);
  if (!algorithms.ok()) return algorithms.status();
  auto network = read_network(options.network, options.ranks);
  if (!network.ok()) return network.status();
  auto sizes = read_sizes(options);
  if (!sizes.ok()) return sizes.status();
  if (*operation == plan::Operation::barrier) sizes->assign(1, 0);
  return Sweep{.problem = {.operation = *operation,
                           .size = options.ranks,
                           .root = plan::has_root(*operation) ? options.root : 0,
                           .pieces = options.pieces,
                           .ranks_per_host = std::min(network->ranks_per_host, options.ranks)},
               .network = *network,
               .sizes = std::move(*sizes),
               .algorithms = std::move(*algorithms),
               .steps_max = options.steps_max};
}

/// Bytes a second; 0 where there is no time.
double bandwidth(std::uint64_t bytes, const Outcome& outcome) noexcept {
  return outcome.seconds > 0 ? static_cast<double>(bytes) / outcome.seconds : 0;
}

double bound_share(const Outcome& outcome) noexcept {
  return outcome.seconds > 0 ? outcome.bound_seconds / outcome.seconds : 0;
}

std::vector<std::string> row(const Sweep& sweep, std::uint64_t bytes, const Outcome& outcome,
                             bool is_best) {
  const double bus =
      bandwidth(bytes, outcome) * choose::bus_factor(sweep.problem.operation, sweep.problem.size);
  std::string label(outcome.algorithm->name);
  if (outcome.pieces > 1) label += fmt::format(" / {}", outcome.pieces);
  return {is_best ? "*" : "",
          label,
          (outcome.is_simulated ? "" : "~") + format_time(outcome.seconds),
          fmt::format("{:.3f}", bus / 1e9),
          fmt::format("{:.0f} %", 100 * bound_share(outcome)),
          outcome.busiest_link.empty()
              ? ""
              : fmt::format("{} ({:.0f} %)", outcome.busiest_link, 100 * outcome.busiest_share)};
}

void print_tables(const SimOptions& options, const Sweep& sweep, const Outcomes& outcomes) {
  Page page;
  bool has_estimates = false;
  page.heading(fmt::format("{}: {}", name(sweep.problem.operation),
                           place(sweep.problem, options.network.preset)));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    page.heading(fmt::format("{}B", format_size(sweep.sizes[i])));
    std::vector<std::vector<std::string>> rows = {
        {" ", "algorithm", "time", "busbw GB/s", "of the bound", "busiest link (busy)"}};
    const std::size_t winner = best(outcomes[i]);
    for (std::size_t j = 0; j < outcomes[i].size(); ++j) {
      rows.push_back(row(sweep, sweep.sizes[i], outcomes[i][j], j == winner));
      has_estimates |= !outcomes[i][j].is_simulated;
    }
    page.table(rows);
  }
  fmt::print("\n* the fastest;  / N: in N pieces{}\n",
             has_estimates ? ";  ~ too many steps to simulate: by the formula" : "");
}

Json to_json(const Sweep& sweep, std::uint64_t bytes, const Outcome& outcome, bool is_best) {
  const double speed = bandwidth(bytes, outcome);
  return {{"algorithm", outcome.algorithm->name},
          {"best", is_best},
          {"pieces", outcome.pieces},
          {"simulated", outcome.is_simulated},
          {"seconds", outcome.seconds},
          {"algbw", speed},
          {"busbw", speed * choose::bus_factor(sweep.problem.operation, sweep.problem.size)},
          {"bound_share", bound_share(outcome)},
          {"busiest_link", outcome.busiest_link},
          {"busiest_share", outcome.busiest_share}};
}

void print_sweep_json(const SimOptions& options, const Sweep& sweep, const Outcomes& outcomes) {
  Json network = {{"preset", options.network.preset}};
  for (const auto& each : describe(sweep.network)) network[each.front()] = each.back();
  Json sizes = Json::array();
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    Json algorithms = Json::array();
    const std::size_t winner = best(outcomes[i]);
    for (std::size_t j = 0; j < outcomes[i].size(); ++j) {
      algorithms.push_back(to_json(sweep, sweep.sizes[i], outcomes[i][j], j == winner));
    }
    sizes.push_back({{"bytes", sweep.sizes[i]},
                     {"bound_seconds", outcomes[i].front().bound_seconds},
                     {"algorithms", algorithms}});
  }
  const Json document = {{"operation", name(sweep.problem.operation)},
                         {"ranks", sweep.problem.size},
                         {"root", sweep.problem.root},
                         {"network", network},
                         {"sizes", sizes}};
  fmt::print("{}\n", document.dump(2));
}

void print_networks() {
  Page page;
  for (const choose::Preset& each : choose::presets()) {
    page.heading(fmt::format("{}: {}", each.name, each.summary));
    page.table(describe(each.network));
  }
}

/// Of 2, 4, … ranks, up to as many as asked for.
Result<std::vector<PlotRow>> run_rows(Sweep sweep) {
  const std::uint32_t most = sweep.problem.size;
  sweep.steps_max = std::min(sweep.steps_max, plot_steps_max);
  sweep.problem.root = 0;
  std::vector<PlotRow> rows;
  for (std::uint32_t ranks = std::min(2U, most); ranks < 2 * most; ranks *= 2) {
    sweep.problem.size = std::min(ranks, most);
    auto outcomes = run(sweep);
    if (!outcomes.ok()) return outcomes.status();
    rows.push_back({sweep.problem.size, std::move(*outcomes)});
  }
  return rows;
}

int plot(const SimOptions& options, const Sweep& sweep) {
  const auto rows = run_rows(sweep);
  if (!rows.ok()) return fail("hocket sim", rows.status());
  const std::string heading =
      fmt::format("{} on {}: the fastest algorithm, and its share of the bound",
                  name(sweep.problem.operation), options.network.preset);
  const Status status = write_file(options.plot, draw_plot(heading, sweep, *rows));
  return status.ok() ? program::exit_success : fail("hocket sim", status);
}

int simulate(const SimOptions& options) {
  if (options.networks) {
    print_networks();
    return program::exit_success;
  }
  const auto sweep = read_sweep(options);
  if (!sweep.ok()) return fail("hocket sim", sweep.status());
  if (!options.plot.empty()) return plot(options, *sweep);
  const auto outcomes = run(*sweep);
  if (!outcomes.ok()) return fail("hocket sim", outcomes.status());
  (options.json ? print_sweep_json : print_tables)(options, *sweep, *outcomes);
  return program::exit_success;
}

}  // namespace

void add_sim_command(program::Parser& program) {
  const auto options = std::make_shared<SimOptions>();
  program::Parser& parser =
      program.add_command("sim", "Time an operation on a network that need not be here");
  parser.set_footer(
      "Sizes are those of the whole vector. The bound is what no algorithm can beat that sends one "
      "message at a time.");
  parser.add_option("operation", &options->operation, "all_reduce, broadcast, …").with_default();
  parser.add_option("-n,--ranks", &options->ranks, "Ranks").with_default();
  parser.add_option("-b,--min-bytes", &options->bytes_min, "The first size").with_default();
  parser.add_option("-e,--max-bytes", &options->bytes_max, "The last size").with_default();
  parser.add_option("-f,--factor", &options->factor, "From one size to the next").with_default();
  parser.add_option("--algorithm", &options->algorithm, "One of them, or all").with_default();
  parser.add_option("--root", &options->root, "Of operations that have one").with_default();
  parser.add_option("--pieces", &options->pieces, "Of a pipeline (default: what should be best)");
  parser
      .add_option("--steps-max", &options->steps_max,
                  "Steps of all ranks that are not alike, about 80 bytes each, beyond which a "
                  "formula has to do")
      .with_default();
  add_network_options(parser, options->network);
  parser.add_flag("--networks", &options->networks, "List the networks and their numbers instead");
  parser.add_flag("--json", &options->json, "Write everything as one JSON document");
  parser.add_option("--plot", &options->plot,
                    "FILE.svg: draw the fastest by size and ranks instead");
  parser.on_run([options] { return simulate(*options); });
}

}  // namespace hocket::cli
