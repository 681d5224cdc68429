#include "collectives.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/config.hpp"
#include "base/text.hpp"
#include "engine/transports.hpp"
#include "local_world.hpp"
#include "reduce/reduction.hpp"
#include "sweep.hpp"
#include "sweep_report.hpp"
#include "world/entry.hpp"

namespace hocket::bench {
namespace {

constexpr std::array kinds = {
    CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
    CollectiveKind::broadcast,  CollectiveKind::reduce,         CollectiveKind::gather,
    CollectiveKind::scatter,    CollectiveKind::all_to_all,     CollectiveKind::barrier,
};

struct Options {
  std::string begin = "8";
  std::string end = "64M";
  std::uint64_t factor = 4;
  std::string step = "0";
  std::size_t iterations = 0;
  std::size_t warmups = 5;
  std::vector<std::string> types = {"f32"};
  std::vector<std::string> ops = {"sum"};
  int root = 0;
  bool checks = true;
  bool in_place = false;
  std::string transport;
  int ranks = 0;
  std::string format = "table";
  bool csv = false;
  bool json = false;
  bool progress = false;
};

Format format_of(const Options& options) {
  if (options.json || options.format == "json") return Format::json;
  if (options.csv || options.format == "csv") return Format::csv;
  return options.format == "osu" ? Format::osu : Format::table;
}

std::uint64_t read_size(const std::string& flag, const std::string& text) {
  const auto size = parse_size(text);
  if (!size)
    throw CLI::ValidationError(flag, fmt::format("{} is no size such as 8, 64K or 4M", text));
  return *size;
}

std::vector<std::uint64_t> read_sizes(const Options& options) {
  const std::uint64_t first = read_size("--begin", options.begin);
  const std::uint64_t last = read_size("--end", options.end);
  const std::uint64_t step = read_size("--step", options.step);
  if (first > last) {
    throw CLI::ValidationError("--begin",
                               fmt::format("{} is more than --end {}", options.begin, options.end));
  }
  return sizes_between(first, last, options.factor, step);
}

template <class Value, class Parse>
std::vector<Value> read_all(const std::vector<std::string>& words, const char* flag, Parse parse,
                            std::span<const Value> all) {
  std::vector<Value> values;
  for (const std::string& word : words) {
    if (word == "all") return {all.begin(), all.end()};
    const auto value = parse(word);
    if (!value) throw CLI::ValidationError(flag, fmt::format("what is {}?", quote(word)));
    values.push_back(*value);
  }
  return values;
}

bool is_defined(DataType type, ReduceOp op) {
  return reduce::Reduction::make({.type = type, .op = op, .factor = Pattern::factor}).ok();
}

/// Of all types and ops those that go together.
std::vector<Case> read_cases(CollectiveKind kind, const Options& options) {
  const auto types = read_all(options.types, "--dtype", parse_data_type, all_data_types());
  std::vector<ReduceOp> ops = {ReduceOp::sum};
  if (reduces(kind)) ops = read_all(options.ops, "--op", parse_reduce_op, all_reduce_ops());
  const bool is_one = types.size() * ops.size() == 1;
  std::vector<Case> cases;
  for (const DataType type : types) {
    for (const ReduceOp op : ops) {
      if (is_defined(type, op)) {
        cases.push_back({.kind = kind,
                         .type = type,
                         .op = op,
                         .root = options.root,
                         .in_place = options.in_place});
      } else if (is_one) {
        throw CLI::ValidationError("--op",
                                   fmt::format("{} is not defined for {}", name(op), name(type)));
      }
    }
  }
  return cases;
}

/// What can be told without a world.
Sweep read_sweep(CollectiveKind kind, const Options& options) {
  if (options.in_place && !can_be_in_place(kind)) {
    throw CLI::ValidationError("--in-place", fmt::format("{} is never in place", name(kind)));
  }
  Sweep sweep = {.cases = read_cases(kind, options),
                 .sizes = read_sizes(options),
                 .iterations = options.iterations,
                 .warmups = options.warmups,
                 .checks = options.checks};
  if (kind == CollectiveKind::barrier) {
    sweep.cases.resize(1);
    sweep.sizes = {0};
  }
  return sweep;
}

/// As join() chooses it.
std::string transport_in_use() {
  const Config& config = process_config();
  if (const auto named = config.text_of(variables::transport)) return std::string(*named);
  for (const TransportKind* kind :
       engine::find_transports(config.get(variables::transport_path)).kinds) {
    if (kind->available().ok()) return std::string(kind->name);
  }
  return "unknown";
}

int count_hosts(Communicator& world) {
  const std::uint64_t ours = std::hash<std::string>()(world::describe_process().host);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  world.all_gather<std::uint64_t>(std::span(&ours, 1), all);
  return static_cast<int>(std::set(all.begin(), all.end()).size());
}

Conditions conditions_of(Communicator& world, CollectiveKind kind, const Sweep& sweep,
                         const Options& options) {
  return {.kind = kind,
          .transport = transport_in_use(),
          .algorithm = process_config().get(variables::algorithm),
          .ranks = world.size(),
          .hosts = count_hosts(world),
          .processors = std::thread::hardware_concurrency(),
          .in_place = options.in_place,
          .checks = sweep.checks,
          .iterations = sweep.iterations,
          .warmups = sweep.warmups};
}

void check_root(const Options& options, int ranks) {
  if (options.root < ranks) return;
  throw CLI::ValidationError("--root", fmt::format("{} is none of {} ranks", options.root, ranks));
}

void check_ranks(const Options& options, int ranks) {
  if (options.ranks == 0 || options.ranks == ranks) return;
  throw CLI::ValidationError(
      "--ranks", fmt::format("{} is for a world of its own; the launcher's has {} ranks",
                             options.ranks, ranks));
}

/// On a terminal in one line that is written over.
void show_progress(const std::string& what, bool is_terminal) {
  fmt::print(stderr, "{}{} …{}", is_terminal ? "\r\x1b[K" : "", what, is_terminal ? "" : "\n");
  std::fflush(stderr);
}

/// Whether nothing was wrong.
bool run_as_rank(CollectiveKind kind, Sweep sweep, const Options& options) {
  Communicator world = join();
  check_ranks(options, world.size());
  check_root(options, world.size());
  const Conditions conditions = conditions_of(world, kind, sweep, options);
  // Processes of several hosts have no clock in common by which a barrier could be checked.
  if (kind == CollectiveKind::barrier && conditions.hosts > 1) sweep.checks = false;
  const bool speaks = world.rank() == 0;
  const bool is_terminal = isatty(STDERR_FILENO) == 1;
  std::optional<SweepReport> report;
  if (speaks) report.emplace(conditions, format_of(options));
  bool is_right = true;
  run(
      world, sweep,
      [&](const Row& row) {
        if (speaks && is_terminal) fmt::print(stderr, "\r\x1b[K");
        if (speaks) report->add(row);
        is_right = is_right && row.wrong == 0;
      },
      [&](const std::string& what) {
        if (speaks && (is_terminal || options.progress)) show_progress(what, is_terminal);
      });
  if (speaks) report->finish();
  return is_right;
}

/// How many ranks a local world has, when nobody says it.
int usual_ranks() { return std::max(2, static_cast<int>(std::thread::hardware_concurrency())); }

void run_command(CollectiveKind kind, const Options& options, std::vector<std::string> words) {
  const Sweep sweep = read_sweep(kind, options);
  if (!options.transport.empty()) {
    ::setenv(std::string(variables::transport.name).c_str(), options.transport.c_str(), 1);
  }
  if (is_launched()) {
    if (!run_as_rank(kind, sweep, options)) throw CLI::RuntimeError(1);
    return;
  }
  const int ranks = options.ranks > 0 ? options.ranks : usual_ranks();
  check_root(options, ranks);
  // Ranks have no terminal.
  if (format_of(options) != Format::table && isatty(STDERR_FILENO) == 1)
    words.emplace_back("--progress");
  launch_ranks(ranks, words);
}

void add_size_options(CLI::App& parser, Options& options) {
  parser.add_option("-b,--begin", options.begin, "The smallest size: bytes of the whole")
      ->capture_default_str();
  parser.add_option("-e,--end", options.end, "The largest")->capture_default_str();
  CLI::Option* const factor =
      parser.add_option("-f,--factor", options.factor, "From one size to the next")
          ->check(CLI::Range(2, 1 << 20))
          ->capture_default_str();
  parser.add_option("-i,--step", options.step, "Bytes from one size to the next, in place of -f")
      ->excludes(factor);
}

void add_work_options(CLI::App& parser, Options& options) {
  parser
      .add_option("-n,--iters", options.iterations, "Calls of a size (as many as fit into 0.2 s)")
      ->check(CLI::Range(1, 10'000'000));
  parser.add_option("-w,--warmup", options.warmups, "Calls before")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  parser.add_option("-d,--dtype", options.types, "Data types, or all")
      ->delimiter(',')
      ->capture_default_str();
  parser.add_option("-o,--op", options.ops, "Ops of reductions, or all")
      ->delimiter(',')
      ->capture_default_str();
  parser.add_option("-r,--root", options.root, "The root, where there is one")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  parser.add_option("-c,--check", options.checks, "Check results: 0 or 1")->capture_default_str();
  parser.add_flag("--in-place", options.in_place, "Results go where the data came from");
}

void add_world_options(CLI::App& parser, Options& options) {
  parser
      .add_option("--ranks", options.ranks,
                  "Without a launcher: start so many here (as many as processors, at least 2)")
      ->check(CLI::Range(1, 4096));
  parser.add_option("--transport", options.transport, "Sets HOCKET_TRANSPORT");
}

void add_output_options(CLI::App& parser, Options& options) {
  parser.add_option("--format", options.format, "How results are written; osu: latency by size")
      ->check(CLI::IsMember({"table", "osu", "csv", "json"}))
      ->capture_default_str();
  parser.add_flag("--json", options.json, "Write one JSON document");
  parser.add_flag("--csv", options.csv, "Write lines of values");
  parser.add_flag("--progress", options.progress,
                  "Say on stderr what is measured, also where it is no terminal");
}

}  // namespace

void add_collective_commands(CLI::App& program, const std::vector<std::string>& words) {
  for (const CollectiveKind kind : kinds) {
    // The program owns its sub-commands, and with this one the options.
    const auto options = std::make_shared<Options>();
    CLI::App* const parser =
        program.add_subcommand(std::string(name(kind)),
                               fmt::format("Time and check {} over a range of sizes", name(kind)));
    add_size_options(*parser, *options);
    add_work_options(*parser, *options);
    add_world_options(*parser, *options);
    add_output_options(*parser, *options);
    parser->callback([kind, options, words] { run_command(kind, *options, words); });
  }
}

}  // namespace hocket::bench
