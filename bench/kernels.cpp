#include "kernels.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/text.hpp"
#include "kernel_sweep.hpp"
#include "program/json.hpp"

namespace hocket::bench {
namespace {

struct KernelsOptions {
  std::vector<std::string> types;
  std::vector<std::string> ops;
  std::vector<std::string> sizes;
  std::string simd = "best";
  int rounds = 7;
  bool quick = false;
  bool json = false;
};

template <class Value, class Parse>
std::vector<Value> parse_all(const std::vector<std::string>& words, const char* flag, Parse parse) {
  std::vector<Value> values;
  for (const std::string& word : words) {
    const auto value = parse(word);
    if (!value) throw program::UsageError(flag, fmt::format("what is \"{}\"?", word));
    values.push_back(*value);
  }
  return values;
}

/// All but the caller's own.
std::vector<ReduceOp> our_ops() {
  std::vector<ReduceOp> ops(all_reduce_ops().begin(), all_reduce_ops().end());
  std::erase(ops, ReduceOp::custom);
  return ops;
}

reduce::InstructionSet parse_instruction_set(const std::string& wanted) {
  std::string known;
  for (const reduce::InstructionSet& set : reduce::instruction_sets()) {
    if (wanted == "best" || wanted == set.name) return set;
    known += fmt::format(" {}", set.name);
  }
  throw program::UsageError("--simd", fmt::format("this machine has:{}", known));
}

KernelSweep to_sweep(const KernelsOptions& options) {
  KernelSweep sweep;
  sweep.types = parse_all<DataType>(options.types, "--dtype", parse_data_type);
  sweep.ops = parse_all<ReduceOp>(options.ops, "--op", parse_reduce_op);
  if (sweep.types.empty() && options.quick) {
    sweep.types = {DataType::i32, DataType::i64, DataType::bf16,
                   DataType::f16, DataType::f32, DataType::f64};
  } else if (sweep.types.empty()) {
    sweep.types.assign(all_data_types().begin(), all_data_types().end());
  }
  if (sweep.ops.empty()) {
    sweep.ops = options.quick ? std::vector{ReduceOp::sum, ReduceOp::max} : our_ops();
  }
  for (const std::uint64_t bytes : parse_all<std::uint64_t>(options.sizes, "--bytes", parse_size)) {
    if (bytes < 64 || bytes > std::uint64_t{4} << 30) {
      throw program::UsageError("--bytes", "an operand of 64 bytes to 4 GiB, please");
    }
    sweep.levels.push_back({.name = format_size(bytes), .bytes = bytes});
  }
  if (sweep.levels.empty()) {
    sweep.levels = {{.name = "8K (L1)", .bytes = 8 << 10},
                    {.name = "64K (L2)", .bytes = 64 << 10},
                    {.name = "64M (DRAM)", .bytes = 64 << 20}};
  }
  sweep.set = parse_instruction_set(options.simd);
  sweep.measuring.rounds = options.rounds;
  return sweep;
}

double best_loop(const KernelTimes& times) { return std::min(times.plain, times.native); }

void print_table(const KernelSweep& sweep, const KernelResults& results) {
  const auto rate = [&](std::size_t level, double seconds) {
    return static_cast<double>(sweep.levels[level].bytes) / seconds * 1e-9;
  };
  fmt::print(
      "Reduction kernels, one thread, {} instructions. GB/s of one operand (GB = 1e9).\n"
      "  apart: out = a op b    in place: a = a op b    loop: the better of the compiler's "
      "-O3 loops, apart\n"
      "  average and premul_sum: their scaling alone, out = a / n and out = a * factor\n\n",
      sweep.set.name);
  fmt::print("{:<19}", "");
  for (const Level& level : sweep.levels) fmt::print(" | {:^33}", level.name);
  fmt::print("\n{:<7}{:<12}", "type", "op");
  for (std::size_t i = 0; i < sweep.levels.size(); ++i) {
    fmt::print(" | {:>7} {:>8} {:>7} {:>8}", "apart", "in place", "loop", "to loop");
  }
  fmt::print("\n{:<19}", "memcpy");
  for (std::size_t i = 0; i < sweep.levels.size(); ++i) {
    fmt::print(" | {:>7.1f} {:>25}", rate(i, results.memcpy[i]), "");
  }
  for (const KernelTimes& times : results.kernels) {
    if (times.level == 0) fmt::print("\n{:<7}{:<12}", name(times.type), name(times.op));
    fmt::print(" | {:>7.1f} {:>8.1f} {:>7.1f} {:>7.2f}x", rate(times.level, times.apart),
               rate(times.level, times.in_place), rate(times.level, best_loop(times)),
               best_loop(times) / times.apart);
  }
  fmt::print("\n\n");
}

const KernelTimes* find(const KernelResults& results, DataType type, std::size_t level) {
  for (const KernelTimes& times : results.kernels) {
    if (times.type == type && times.op == ReduceOp::sum && times.level == level) return &times;
  }
  return nullptr;
}

/// What the table is made for, in words.
void print_findings(const KernelSweep& sweep, const KernelResults& results) {
  const std::size_t last = sweep.levels.size() - 1;
  for (const DataType type : {DataType::f32, DataType::f64, DataType::i32, DataType::i64}) {
    const KernelTimes* const times = find(results, type, last);
    if (times == nullptr || sweep.levels[last].bytes < 32 << 20) continue;
    fmt::print(
        "{} sum at {}: {:.2f} apart, {:.2f} in place, of the speed at which both operands can be "
        "read ({:.1f} GB/s)\n",
        name(type), sweep.levels[last].name, times->read_both / times->apart,
        times->read_both / times->in_place,
        static_cast<double>(sweep.levels[last].bytes) / times->read_both * 1e-9);
  }
  for (const DataType type : {DataType::bf16, DataType::f16}) {
    for (std::size_t level = 0; level < sweep.levels.size(); ++level) {
      const KernelTimes* const small = find(results, type, level);
      const KernelTimes* const whole = find(results, DataType::f32, level);
      if (small == nullptr || whole == nullptr) continue;
      fmt::print("{} sum at {}: {:.2f} of f32's elements a second\n", name(type),
                 sweep.levels[level].name, 2 * whole->apart / small->apart);
    }
  }
  int slower = 0;
  for (const KernelTimes& times : results.kernels) {
    const double ratio = best_loop(times) / times.apart;
    if (ratio >= 0.95) continue;
    ++slower;
    fmt::print("slower than the compiler's loop: {} {} at {}, {:.2f}x\n", name(times.type),
               name(times.op), sweep.levels[times.level].name, ratio);
  }
  fmt::print("{} of {} cells are more than 5 % slower than the compiler's better loop\n", slower,
             results.kernels.size());
}

void print_json(const KernelSweep& sweep, const KernelResults& results) {
  program::Json document = {
      {"benchmark", "kernels"},           {"version", version()},
      {"simd", sweep.set.name},           {"rounds", sweep.measuring.rounds},
      {"levels", program::Json::array()}, {"results", program::Json::array()}};
  for (std::size_t i = 0; i < sweep.levels.size(); ++i) {
    document["levels"].push_back({{"name", sweep.levels[i].name},
                                  {"bytes", sweep.levels[i].bytes},
                                  {"memcpy_s", results.memcpy[i]}});
  }
  for (const KernelTimes& times : results.kernels) {
    document["results"].push_back({{"dtype", name(times.type)},
                                   {"op", name(times.op)},
                                   {"bytes", sweep.levels[times.level].bytes},
                                   {"apart_s", times.apart},
                                   {"in_place_s", times.in_place},
                                   {"plain_loop_s", times.plain},
                                   {"native_loop_s", times.native},
                                   {"read_both_s", times.read_both}});
  }
  fmt::print("{}\n", document.dump(2));
}

void run_command(const KernelsOptions& options) {
  const KernelSweep sweep = to_sweep(options);
  const bool shows_progress = isatty(STDERR_FILENO) != 0;
  const KernelResults results = run(sweep, [&](const std::string& part) {
    if (shows_progress) fmt::print(stderr, "\r\x1b[K{} …", part);
  });
  if (shows_progress) fmt::print(stderr, "\r\x1b[K");
  if (options.json) return print_json(sweep, results);
  print_table(sweep, results);
  print_findings(sweep, results);
}

}  // namespace

void add_kernels_command(program::Parser& program) {
  // The program owns its sub-commands, and with this one the options.
  const auto options = std::make_shared<KernelsOptions>();
  program::Parser& parser = program.add_command(
      "kernels",
      "speed of the reduction kernels on one core, beside memcpy and the compiler's loops");
  parser.add_option("-d,--dtype", &options->types, "data types (default: all)").comma_separated();
  parser.add_option("-o,--op", &options->ops, "reduction ops (default: all)").comma_separated();
  parser.add_option("-b,--bytes", &options->sizes, "bytes of one operand, such as 8K,1M")
      .comma_separated();
  parser.add_option("--simd", &options->simd, "best, avx512, avx2, sse4, neon or none");
  parser.add_option("--rounds", &options->rounds, "times that everything is measured")
      .in_range(1, 1000);
  parser.add_flag("--quick", &options->quick, "only a few types and ops");
  parser.add_flag("--json", &options->json, "one JSON document instead of the table");
  parser.on_run([options] {
    run_command(*options);
    return program::exit_success;
  });
}

}  // namespace hocket::bench
