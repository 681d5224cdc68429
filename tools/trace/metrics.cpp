#include "trace/metrics.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string_view>

#include <fmt/format.h>

#include "trace/operation.hpp"

namespace hocket::trace {
namespace {

/// As the format wants it in a label.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char each : text) {
    if (each == '\\' || each == '"') out += '\\';
    out += each == '\n' ? ' ' : each;
  }
  return out;
}

std::string labels_of(const World& world, const Dump& dump) {
  return fmt::format("world=\"{:016x}\",rank=\"{}\",host=\"{}\",pid=\"{}\"", world.id, dump.rank(),
                     escaped(dump.host()), dump.header.pid);
}

using PerRank = std::function<double(const Dump&)>;
using PerKind = std::function<double(const record::Total&)>;

class MetricsText {
 public:
  explicit MetricsText(const std::vector<World>& worlds) : worlds_(worlds) {}

  void add(std::string_view name, std::string_view type, std::string_view help,
           const PerRank& value) {
    begin(name, type, help);
    for_each_rank([&](const World& world, const Dump& dump) {
      text_ += fmt::format("{}{{{}}} {}\n", name, labels_of(world, dump), value(dump));
    });
  }

  void add_of_kinds(std::string_view name, std::string_view help, const PerKind& value) {
    begin(name, "counter", help);
    for_each_rank([&](const World& world, const Dump& dump) {
      for (std::uint8_t kind = 0; kind < record::kinds_max; ++kind) {
        const record::Total& total = dump.header.totals.at(kind);
        if (total.done + total.failed == 0) continue;
        text_ += fmt::format("{}{{{},operation=\"{}\"}} {}\n", name, labels_of(world, dump),
                             kind_name(kind), value(total));
      }
    });
  }

  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n", name, help, type);
  }

  template <class Action>
  void for_each_rank(const Action& action) {
    for (const World& world : worlds_) {
      for (const Dump& dump : world.dumps) action(world, dump);
    }
  }

  const std::vector<World>& worlds_;
  std::string text_;
};

double open_operations(const Dump& dump) {
  return static_cast<double>(std::ranges::count_if(dump.entries, is_under_way));
}

/// The age of the oldest operation that waits for another rank; 0 if none does.
double stalled_seconds(const Dump& dump) {
  std::int64_t longest = 0;
  for (const record::Entry& each : dump.entries) {
    if (is_stalled(each)) longest = std::max(longest, dump.now - each.begun);
  }
  return static_cast<double>(longest) / 1e9;
}

}  // namespace

std::string metrics(const std::vector<World>& worlds) {
  MetricsText page(worlds);
  page.add("hocket_up", "gauge", "1 while the rank runs, 0 if it is stopped, gone or has left.",
           [](const Dump& dump) { return dump.life == record::Life::running ? 1.0 : 0.0; });
  page.add_of_kinds("hocket_operations_total", "Operations that completed.",
                    [](const record::Total& total) { return static_cast<double>(total.done); });
  page.add_of_kinds("hocket_operations_failed_total", "Operations that failed.",
                    [](const record::Total& total) { return static_cast<double>(total.failed); });
  page.add_of_kinds("hocket_operation_bytes_total",
                    "Bytes of this rank's buffers in operations that ended.",
                    [](const record::Total& total) { return static_cast<double>(total.bytes); });
  page.add_of_kinds(
      "hocket_operation_seconds_total", "Time in operations, from the call to the end.",
      [](const record::Total& total) { return static_cast<double>(total.nanoseconds) / 1e9; });
  page.add("hocket_operations_open", "gauge", "Operations under way, among the last 4,096.",
           open_operations);
  page.add("hocket_stalled_operation_age_seconds", "gauge",
           "Time since the call of the oldest operation that waits for another rank.",
           stalled_seconds);
  return page.take();
}

}  // namespace hocket::trace
