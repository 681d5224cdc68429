#include "sweep_report.hpp"

#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "measure.hpp"
#include "program/json.hpp"

namespace hocket::bench {
namespace {

using program::Json;

/// GB/s.
double algorithm_bandwidth(const Row& row) {
  return row.mean > 0 ? static_cast<double>(row.bytes) / row.mean * 1e-9 : 0;
}
double bus_bandwidth(const Row& row, int ranks) {
  return algorithm_bandwidth(row) * bus_factor(row.what.kind, ranks);
}

std::string_view op_name(const Case& what) { return reduces(what.kind) ? name(what.op) : "none"; }
int root_of(const Case& what) { return has_root(what.kind) ? what.root : -1; }

std::uint64_t wrong_of(const std::vector<Row>& rows) {
  std::uint64_t wrong = 0;
  for (const Row& row : rows) wrong += row.wrong;
  return wrong;
}

double mean_bus_bandwidth(const std::vector<Row>& rows, int ranks) {
  double sum = 0;
  for (const Row& row : rows) sum += bus_bandwidth(row, ranks);
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

std::string describe(const Conditions& of) {
  return fmt::format("hocket-bench {} {}: {} rank{} on {} host{}, transport {}{}{}{}{}{}",
                     version(), name(of.kind), of.ranks, of.ranks == 1 ? "" : "s", of.hosts,
                     of.hosts == 1 ? "" : "s", of.transport,
                     of.memory == "host" ? "" : fmt::format(", {} memory", of.memory),
                     of.in_place ? ", in place" : "", of.is_started ? ", in the background" : "",
                     of.is_prepared ? ", prepared" : "",
                     of.algorithm.empty() ? "" : ", HOCKET_ALGORITHM=" + of.algorithm);
}

std::string describe_calls(const Conditions& of) {
  return fmt::format("{}, after {} to warm up; {}",
                     of.iterations == 0 ? "as many calls as fit into 0.2 s, at least 5"
                                        : fmt::format("{} calls", of.iterations),
                     of.warmups, of.checks ? "results are checked" : "no checks");
}

void print_table_head(const Conditions& of) {
  fmt::print(
      "# {}\n# {} processors; {}\n"
      "# time is the mean of all calls, p50 the median: each that of the slowest rank\n#\n",
      describe(of), of.processors, describe_calls(of));
  fmt::print("#{:>11} {:>12} {:>8} {:>11} {:>5} {:>10} {:>10} {:>10} {:>8} {:>8} {:>7}\n", "size",
             "count", "type", "redop", "root", "time", "p50", "p99", "algbw", "busbw", "#wrong");
  fmt::print("#{:>11} {:>12} {:>8} {:>11} {:>5} {:>10} {:>10} {:>10} {:>8} {:>8}\n", "(B)",
             "(elements)", "", "", "", "(us)", "(us)", "(us)", "(GB/s)", "(GB/s)");
}

void print_table_row(const Row& row, const Conditions& of) {
  fmt::print(
      "{:>12} {:>12} {:>8} {:>11} {:>5} {:>10.2f} {:>10.2f} {:>10.2f} {:>8.3f} {:>8.3f} {:>7}\n",
      row.bytes, row.count, name(row.what.type), op_name(row.what), root_of(row.what), us(row.mean),
      us(row.p50), us(row.p99), algorithm_bandwidth(row), bus_bandwidth(row, of.ranks),
      of.checks ? std::to_string(row.wrong) : "N/A");
}

void print_table_end(const std::vector<Row>& rows, const Conditions& of) {
  const std::uint64_t wrong = wrong_of(rows);
  if (of.checks)
    fmt::print("# Out of bounds values : {} {}\n", wrong, wrong == 0 ? "OK" : "FAILED");
  fmt::print("# Avg bus bandwidth    : {:.4f}\n", mean_bus_bandwidth(rows, of.ranks));
}

/// Bytes as OSU's benchmarks count them: of a part, where ranks give or get parts, but for
/// reduce_scatter.
std::uint64_t osu_bytes(const Row& row) {
  if (row.what.kind == CollectiveKind::reduce_scatter) return row.bytes;
  return row.count * size_of(row.what.type);
}

void print_csv_row(const Row& row, const Conditions& of) {
  fmt::print("{},{},{},{},{},{},{:.3f},{:.3f},{:.3f},{:.4f},{:.4f},{}\n", row.bytes, row.count,
             name(row.what.type), op_name(row.what), root_of(row.what), row.iterations,
             us(row.mean), us(row.p50), us(row.p99), algorithm_bandwidth(row),
             bus_bandwidth(row, of.ranks), of.checks ? std::to_string(row.wrong) : "");
}

Json json_row(const Row& row, const Conditions& of) {
  return {{"bytes", row.bytes},
          {"count", row.count},
          {"dtype", name(row.what.type)},
          {"op", reduces(row.what.kind) ? Json(name(row.what.op)) : Json()},
          {"root", has_root(row.what.kind) ? Json(row.what.root) : Json()},
          {"iterations", row.iterations},
          {"time_s", row.mean},
          {"p50_s", row.p50},
          {"p99_s", row.p99},
          {"cpu_s", row.cpu},
          {"wire_bytes", row.wire_bytes},
          {"algbw_gb_s", algorithm_bandwidth(row)},
          {"busbw_gb_s", bus_bandwidth(row, of.ranks)},
          {"wrong", of.checks ? Json(row.wrong) : Json()}};
}

void print_json(const std::vector<Row>& rows, const Conditions& of) {
  Json document = {
      {"benchmark", name(of.kind)},
      {"version", version()},
      {"transport", of.transport},
      {"ranks", of.ranks},
      {"conditions",
       {{"hosts", of.hosts},
        {"machines", of.machines},
        {"processors", of.processors},
        {"algorithm", of.algorithm.empty() ? Json() : Json(of.algorithm)},
        {"in_place", of.in_place},
        {"in_background", of.is_started},
        {"prepared", of.is_prepared},
        {"memory", of.memory},
        {"iterations", of.iterations == 0 ? Json("0.2 s, at least 5") : Json(of.iterations)},
        {"warmups", of.warmups},
        {"times", "of the slowest rank: mean, median, 99th percentile of its calls"}}},
      {"rows", Json::array()}};
  for (const Row& row : rows) document["rows"].push_back(json_row(row, of));
  document["wrong"] = of.checks ? Json(wrong_of(rows)) : Json();
  document["average_busbw_gb_s"] = mean_bus_bandwidth(rows, of.ranks);
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

SweepReport::SweepReport(const Conditions& conditions, Format format)
    : conditions_(conditions), format_(format) {
  if (format == Format::table) print_table_head(conditions);
  if (format == Format::csv) {
    fmt::print(
        "bytes,count,type,redop,root,iterations,time_us,p50_us,p99_us,algbw_gb_s,busbw_gb_s,"
        "wrong\n");
  }
  if (format == Format::osu) {
    fmt::print("# {}\n# {:<8}{:>18}\n", describe(conditions), "Size", "Avg Latency(us)");
  }
}

void SweepReport::add(const Row& row) {
  rows_.push_back(row);
  if (format_ == Format::table) print_table_row(row, conditions_);
  if (format_ == Format::csv) print_csv_row(row, conditions_);
  if (format_ == Format::osu) fmt::print("{:<10}{:>18.2f}\n", osu_bytes(row), us(row.mean));
  std::fflush(stdout);
}

void SweepReport::finish() const {
  if (format_ == Format::table) print_table_end(rows_, conditions_);
  if (format_ == Format::json) print_json(rows_, conditions_);
}

}  // namespace hocket::bench
