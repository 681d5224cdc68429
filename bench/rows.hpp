// A benchmark of ranks that measures a row for each size.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/text.hpp"
#include "program/json.hpp"
#include "ranks.hpp"
#include "sweep_options.hpp"

namespace hocket::bench {

/// How rows are written. A row says how much was `wrong`.
template <class Row>
struct RowFormat {
  std::string_view benchmark;
  void (*print_head)(const Communicator& world);
  void (*print)(const Row& row);
  program::Json (*to_json)(const Row& row);
};

template <class Row>
void print_json(const std::vector<Row>& rows, const Communicator& world,
                const RowFormat<Row>& format) {
  program::Json document = {{"benchmark", format.benchmark},
                            {"version", version()},
                            {"transport", world.transport()},
                            {"ranks", world.size()},
                            {"conditions", {{"processors", std::thread::hardware_concurrency()}}},
                            {"rows", program::Json::array()}};
  for (const Row& row : rows) document["rows"].push_back(format.to_json(row));
  fmt::print("{}\n", document.dump(2));
}

/// All ranks call it, and rank 0 writes each row as soon as it is there, or all as one document.
/// Whether nothing was wrong.
template <class Row, class Measure>
[[nodiscard]] bool run_rows(const Communicator& world, const std::vector<std::uint64_t>& sizes,
                            const SweepOptions& options, const RowFormat<Row>& format,
                            Measure measure) {
  const bool speaks = world.rank() == 0;
  const Progress progress(options.progress);
  if (speaks && !options.json) format.print_head(world);
  std::vector<Row> rows;
  bool is_right = true;
  for (const std::uint64_t bytes : sizes) {
    if (speaks) progress.show(fmt::format("{}, {}", format.benchmark, format_size(bytes)));
    rows.push_back(measure(bytes));
    is_right = is_right && rows.back().wrong == 0;
    if (!speaks) continue;
    progress.clear();
    if (!options.json) format.print(rows.back());
    std::fflush(stdout);
  }
  if (speaks && options.json) print_json(rows, world, format);
  return is_right;
}

}  // namespace hocket::bench
