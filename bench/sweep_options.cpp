#include "sweep_options.hpp"

#include <span>

#include <fmt/format.h>

#include "base/text.hpp"
#include "comm/arguments.hpp"

namespace hocket::bench {
namespace {

std::uint64_t read_size(const std::string& flag, const std::string& text) {
  const auto size = parse_size(text);
  if (!size)
    throw program::UsageError(flag, fmt::format("{} is no size such as 8, 64K or 4M", text));
  return *size;
}

std::vector<std::uint64_t> read_sizes(const SweepOptions& options) {
  if (!options.sizes.empty()) {
    std::vector<std::uint64_t> sizes;
    for (const std::string& each : options.sizes) sizes.push_back(read_size("--sizes", each));
    return sizes;
  }
  const std::uint64_t first = read_size("--begin", options.begin);
  const std::uint64_t last = read_size("--end", options.end);
  const std::uint64_t step = read_size("--step", options.step);
  if (first > last) {
    throw program::UsageError("--begin",
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
    if (!value) throw program::UsageError(flag, fmt::format("what is {}?", quote(word)));
    values.push_back(*value);
  }
  return values;
}

bool is_defined(CollectiveKind kind, DataType type, ReduceOp op) {
  Collective collective = {.kind = kind, .type = type, .reduction = op};
  collective.reduction.factor = Pattern::factor;  // of premul_sum
  return comm::make_reduction(collective, 1).ok();
}

/// Of all types and ops those that go together.
std::vector<Case> read_cases(CollectiveKind kind, const SweepOptions& options) {
  const auto types = read_all(options.types, "--dtype", parse_data_type, all_data_types());
  std::vector<ReduceOp> ops = {ReduceOp::sum};
  if (reduces(kind)) ops = read_all(options.ops, "--op", parse_reduce_op, all_reduce_ops());
  const bool is_one = types.size() * ops.size() == 1;
  std::vector<Case> cases;
  for (const DataType type : types) {
    for (const ReduceOp op : ops) {
      if (is_defined(kind, type, op)) {
        cases.push_back({.kind = kind,
                         .type = type,
                         .op = op,
                         .root = options.world.root,
                         .in_place = options.in_place,
                         .is_started = options.is_started,
                         .is_prepared = options.is_prepared,
                         .memory = *parse_memory_kind(options.memory)});
      } else if (is_one) {
        throw program::UsageError("--op", fmt::format("{} is not defined for {} in {}", name(op),
                                                      name(type), name(kind)));
      }
    }
  }
  return cases;
}

}  // namespace

Format format_of(const SweepOptions& options) {
  if (options.json || options.format == "json") return Format::json;
  if (options.csv || options.format == "csv") return Format::csv;
  return options.format == "osu" ? Format::osu : Format::table;
}

Sweep read_sweep(CollectiveKind kind, const SweepOptions& options) {
  if (options.in_place && !can_be_in_place(kind)) {
    throw program::UsageError("--in-place", fmt::format("{} is never in place", name(kind)));
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

void add_size_options(program::Parser& parser, SweepOptions& options) {
  program::Option& begin =
      parser.add_option("-b,--begin", &options.begin, "The smallest size: bytes of the whole");
  program::Option& end = parser.add_option("-e,--end", &options.end, "The largest");
  program::Option& factor =
      parser.add_option("-f,--factor", &options.factor, "From one size to the next")
          .in_range(2, 1 << 20);
  for (program::Option* each : {&begin, &end, &factor}) each->with_default();
  program::Option& step =
      parser
          .add_option("-i,--step", &options.step, "Bytes from one size to the next, in place of -f")
          .excludes(factor);
  parser.add_option("--sizes", &options.sizes, "These sizes, in place of all that: 8,4K,2M")
      .comma_separated()
      .excludes(begin)
      .excludes(end)
      .excludes(factor)
      .excludes(step);
}

void add_work_options(program::Parser& parser, SweepOptions& options) {
  parser
      .add_option("-n,--iters", &options.iterations, "Calls of a size (as many as fit into 0.2 s)")
      .in_range(1, 10'000'000);
  parser.add_option("-w,--warmup", &options.warmups, "Calls before")
      .in_range(0, 1'000'000)
      .with_default();
  parser.add_option("-d,--dtype", &options.types, "Data types, or all")
      .comma_separated()
      .with_default();
  parser.add_option("-o,--op", &options.ops, "Ops of reductions, or all")
      .comma_separated()
      .with_default();
  parser.add_option("-r,--root", &options.world.root, "The root, where there is one")
      .not_negative()
      .with_default();
  parser.add_option("-c,--check", &options.checks, "Check results: 0 or 1").with_default();
  parser.add_flag("--in-place", &options.in_place, "Results go where the data came from");
  parser.add_flag("--async", &options.is_started,
                  "Start each call in the background and wait for it");
  parser
      .add_option("--memory", &options.memory,
                  "Where the data lies; unless host, times are of a stream")
      .one_of({"host", "pinned", "device", "managed"})
      .with_default();
  parser.add_flag("--prepared", &options.is_prepared, "Plan once, call often");
}

void add_output_options(program::Parser& parser, SweepOptions& options) {
  parser.add_option("--format", &options.format, "How results are written; osu: latency by size")
      .one_of({"table", "osu", "csv", "json"})
      .with_default();
  parser.add_flag("--json", &options.json, "Write one JSON document");
  parser.add_flag("--csv", &options.csv, "Write lines of values");
  parser.add_flag("--progress", &options.progress,
                  "Say on stderr what is measured, also where it is no terminal");
}

}  // namespace hocket::bench
