#include "plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "draw/plan_chart.hpp"
#include "draw/plan_json.hpp"
#include "draw/plan_svg.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "page.hpp"
#include "plan/catalog.hpp"
#include "plan/lookup.hpp"
#include "plan_explain.hpp"
#include "plan_list.hpp"
#include "program/json.hpp"
#include "proof/verify.hpp"
#include "prove/sweep.hpp"

namespace hocket::cli {
namespace {

using plan::Algorithm;
using plan::Operation;
using plan::Plan;
using plan::Problem;

constexpr int sizes_max = 1 << 16;  // ranks

/// Most of what the system and the container have, without what each thread keeps; little where
/// nobody says how much that is.
double usual_memory_gib() {
  double free_gib = 2;
  std::ifstream system("/proc/meminfo");
  for (std::string line; std::getline(system, line);) {
    double kib = 0;
    if (std::sscanf(line.c_str(), "MemAvailable: %lf kB", &kib) == 1) free_gib = kib / (1 << 20);
  }
  double container = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> container) {
    free_gib = std::min(free_gib, container / (1 << 30));
  }
  return std::max(0.9 * free_gib - 0.5 * std::thread::hardware_concurrency(), 0.5);
}

struct PlanOptions {
  std::string operation;
  std::string algorithm;
  Problem problem = {.size = 4};
  std::string svg;
  std::string sizes = "1-64";
  unsigned threads = std::max(std::thread::hardware_concurrency(), 1U);
  double memory_gib = usual_memory_gib();
  bool all = false;
  bool needs_all_sizes = false;
  bool json = false;
};

/// Those of the words that are given; none at all: every one.
Result<std::vector<const Algorithm*>> find_algorithms(const PlanOptions& options) {
  std::optional<Operation> operation;
  if (!options.operation.empty()) {
    const auto given = plan::look_up_operation(options.operation);
    if (!given.ok()) return given.status();
    operation = *given;
  }
  return plan::look_up_algorithms(operation, options.algorithm);
}

int list(const PlanOptions& options, bool is_sized) {
  const auto algorithms = find_algorithms(options);
  if (!algorithms.ok()) return fail("hocket plan", algorithms.status());
  print_algorithms(*algorithms, is_sized ? std::optional(options.problem) : std::nullopt,
                   options.json);
  return program::exit_success;
}

Status check(const Algorithm& algorithm, const Problem& problem) {
  if (problem.root >= problem.size || (problem.root > 0 && !has_root(algorithm.operation))) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("--root {} is no root of {} by {} ranks", problem.root,
                              name(algorithm.operation), problem.size));
  }
  if (problem.contributions > 0 && !takes_contributions(algorithm)) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} by {} has one contribution of each rank, not --contributions {}",
                              name(algorithm.operation), algorithm.name, problem.contributions))
        .with_hint("all_reduce by canonical takes any number");
  }
  if (can_solve(algorithm, problem)) return {};
  return Status(StatusCode::invalid_argument,
                fmt::format("--contributions {} are too few for {} ranks, each of which has one",
                            problem.contributions, problem.size));
}

int show(PlanOptions& options) {
  const auto algorithms = find_algorithms(options);
  if (!algorithms.ok()) return fail("hocket plan", algorithms.status());
  const Algorithm& algorithm = *algorithms->front();
  options.problem.operation = algorithm.operation;
  if (Status status = check(algorithm, options.problem); !status.ok())
    return fail("hocket plan", status);
  const std::vector<Plan> plans = build_all(algorithm, options.problem);
  const auto proof = proof::verify(plans);
  if (!proof.ok()) return fail("hocket plan", proof.status());
  if (options.json) {
    fmt::print("{}\n", draw::plan_json(plans));
    return program::exit_success;
  }
  if (options.svg.empty()) {
    fmt::print("{}", draw::plan_chart(plans, *proof));
    return program::exit_success;
  }
  const Status status = write_file(options.svg, draw::plan_svg(plans));
  return status.ok() ? program::exit_success : fail("hocket plan", status);
}

/// "1-64,100,1000-1010"
Result<std::vector<std::uint32_t>> parse_sizes(std::string_view text) {
  std::vector<std::uint32_t> sizes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || *first < 1 || *first > *last || *last > sizes_max) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("--sizes {} is no list of sizes such as 1-64,1000", quote(text)))
          .with_hint(fmt::format("sizes are from 1 to {}", sizes_max));
    }
    const std::size_t before = sizes.size();
    sizes.resize(before + static_cast<std::size_t>(*last - *first + 1));
    std::iota(sizes.begin() + static_cast<std::ptrdiff_t>(before), sizes.end(),
              static_cast<std::uint32_t>(*first));
  }
  return sizes;
}

void show_progress(const prove::Progress& progress) {
  fmt::print(stderr, "\r{} of {} done", progress.done, progress.all);
  if (progress.done == progress.all) fmt::print(stderr, "\r{:40}\r", "");
}

void print_rows(const std::vector<prove::Row>& rows, double seconds) {
  Page page;
  std::vector<std::vector<std::string>> table = {
      {"operation", "algorithm", "sizes", "worlds", "steps", "seconds", ""}};
  std::uint64_t worlds = 0;
  std::size_t proved = 0;
  for (const prove::Row& row : rows) {
    std::string remark = row.failure.ok() ? "" : "FAILED ";
    if (!row.skipped.empty()) {
      remark += fmt::format("skipped {} of the sizes, from {} on: too much for memory",
                            row.skipped.size(), row.skipped.front());
    }
    table.push_back({std::string(name(row.algorithm->operation)), std::string(row.algorithm->name),
                     std::to_string(row.sizes), std::to_string(row.worlds),
                     std::to_string(row.steps), fmt::format("{:.2f}", row.time.count()), remark});
    worlds += row.worlds;
    if (row.failure.ok() && row.sizes > 0) ++proved;
  }
  page.table(table);
  for (const prove::Row& row : rows) {
    if (row.failure.ok()) continue;
    fmt::print("\n{} {}, {}\n", name(row.algorithm->operation), row.algorithm->name,
               row.failure.what());
  }
  fmt::print("\n{} of {} algorithms proved, {} worlds, {:.1f} s\n", proved, rows.size(), worlds,
             seconds);
}

void print_json(const std::vector<prove::Row>& rows) {
  auto document = program::Json::array();
  for (const prove::Row& row : rows) {
    document.push_back({{"operation", name(row.algorithm->operation)},
                        {"algorithm", row.algorithm->name},
                        {"sizes", row.sizes},
                        {"worlds", row.worlds},
                        {"steps", row.steps},
                        {"seconds", row.time.count()},
                        {"failure", row.failure.ok() ? "" : std::string(row.failure.what())},
                        {"skipped", row.skipped}});
  }
  fmt::print("{}\n", document.dump(2));
}

int verify_all(const PlanOptions& options) {
  if (options.operation.empty() && !options.all) {
    return fail("hocket plan", Status(StatusCode::invalid_argument, "no operation was named")
                                   .with_hint("name an operation, or say --all"));
  }
  auto algorithms = find_algorithms(options);
  if (!algorithms.ok()) return fail("hocket plan", algorithms.status());
  auto sizes = parse_sizes(options.sizes);
  if (!sizes.ok()) return fail("hocket plan", sizes.status());
  prove::Options wanted{.algorithms = std::move(*algorithms),
                        .sizes = std::move(*sizes),
                        .threads = options.threads,
                        .memory_bytes = static_cast<std::uint64_t>(options.memory_gib * (1 << 30))};
  if (isatty(STDERR_FILENO) == 1) wanted.on_progress = show_progress;
  const Instant start = monotonic_clock().now();
  const std::vector<prove::Row> rows = prove::sweep(wanted);
  const std::chrono::duration<double> time = monotonic_clock().now() - start;
  options.json ? print_json(rows) : print_rows(rows, time.count());
  const bool is_proved = std::ranges::all_of(rows, [&](const prove::Row& row) {
    return row.failure.ok() && (row.skipped.empty() || !options.needs_all_sizes);
  });
  return is_proved ? program::exit_success : program::exit_failure;
}

program::Parser& add_parser(program::Parser& parser, const char* name, const char* help,
                            PlanOptions& options, bool needs_names) {
  program::Parser& added = parser.add_command(name, help);
  added.add_option("operation", &options.operation, "all_reduce, broadcast, …")
      .required(needs_names);
  added.add_option("algorithm", &options.algorithm, "As `hocket plan list` names it")
      .required(needs_names);
  return added;
}

program::Option& add_json_flag(program::Parser& parser, PlanOptions& options) {
  return parser.add_flag("--json", &options.json, "Write one JSON document");
}

/// Returns the number of ranks.
program::Option& add_world_options(program::Parser& parser, Problem& problem, int ranks_max) {
  program::Option& ranks =
      parser.add_option("-n,--ranks", &problem.size, "Ranks").in_range(1, ranks_max);
  parser.add_option("--pieces", &problem.pieces, "Of a pipeline")
      .in_range(1, limits::plan_pieces_max)
      .with_default();
  parser.add_option("--ranks-per-host", &problem.ranks_per_host, "Of algorithms that know hosts")
      .in_range(1, 1024)
      .with_default();
  return ranks;
}

void add_list_command(program::Parser& plan, const std::shared_ptr<PlanOptions>& options) {
  program::Parser& parser = add_parser(plan, "list", "List the algorithms", *options, false);
  add_json_flag(parser, *options);
  const program::Option& ranks = add_world_options(parser, options->problem, sizes_max);
  parser.on_run([options, &ranks] { return list(*options, ranks.is_given()); });
}

void add_show_command(program::Parser& plan, const std::shared_ptr<PlanOptions>& options) {
  program::Parser& parser = add_parser(plan, "show", "Draw the plans of a world", *options, true);
  program::Option& json = add_json_flag(parser, *options);
  add_world_options(parser, options->problem, 1024).with_default();
  parser.add_option("--root", &options->problem.root, "Of operations that have one").with_default();
  parser
      .add_option("--contributions", &options->problem.contributions,
                  "Of all ranks together, of algorithms that give the same bits at every size")
      .in_range(1, 4096);
  parser.add_option("--svg", &options->svg, "Draw into this file").excludes(json);
  parser.on_run([options] { return show(*options); });
}

void add_verify_command(program::Parser& plan, const std::shared_ptr<PlanOptions>& options) {
  program::Parser& parser =
      add_parser(plan, "verify", "Prove algorithms at many sizes", *options, false);
  add_json_flag(parser, *options);
  parser.add_flag("--all", &options->all, "All operations");
  parser.add_option("--sizes", &options->sizes, "Such as 1-64,100").with_default();
  parser.add_option("--threads", &options->threads, "Proofs at once")
      .in_range(1, 1024)
      .with_default();
  parser.add_flag("--needs-all-sizes", &options->needs_all_sizes, "Fail where one is skipped");
  parser.add_option("--memory", &options->memory_gib,
                    "GiB that they may take; by default most of what is free");
  parser.on_run([options] {
    if (!(options->memory_gib > 0)) throw program::UsageError("--memory", "it must be more than 0");
    return verify_all(*options);
  });
}

}  // namespace

void add_plan_command(program::Parser& program) {
  const auto options = std::make_shared<PlanOptions>();
  program::Parser& parser =
      program.add_command("plan", "List the algorithms, draw their plans, prove them");
  add_list_command(parser, options);
  add_show_command(parser, options);
  add_verify_command(parser, options);
  add_explain_command(parser);
}

}  // namespace hocket::cli
