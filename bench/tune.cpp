#include "tune.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "hocket/hocket.hpp"

#include "base/text.hpp"
#include "fit.hpp"
#include "measure.hpp"
#include "ranks.hpp"
#include "sim/parameters.hpp"
#include "sim/selector.hpp"

namespace hocket::bench {
namespace {

using plan::Algorithm;
using plan::Operation;

constexpr double worth_a_rule = 1.05;  // what is chosen without may take so many times as long
constexpr double hopeless = 3;         // times the fastest, at every size: measured once only
constexpr std::string_view automatic = "";

struct Options {
  int ranks = 0;
  std::string launch = {};
  std::vector<std::string> operations = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  std::vector<std::string> sizes = {"1K", "8K", "64K", "512K", "4M", "32M"};
  int rounds = 3;
  std::string out = "hocket-tuning.txt";
};

/// A run of hocket-bench by other ranks.
struct Times {
  int ranks = 0;
  int hosts = 0;
  std::map<std::uint64_t, double> by_size = {};  // p50, seconds
};

/// Of one operation: seconds in each round, by size and algorithm.
using Measurements = std::map<std::uint64_t, std::map<std::string_view, std::vector<double>>>;

class Tuner {
 public:
  explicit Tuner(const Options& options) : options_(options) {}

  void run();

 private:
  void measure(Operation operation);
  [[nodiscard]] std::vector<std::string_view> names_of(Operation operation) const;
  [[nodiscard]] std::optional<Times> run_once(Operation operation, std::string_view name) const;
  void take(Operation operation, Measurements& all);
  void print(Operation operation, const Measurements& all) const;
  void add_rules(Operation operation, const Measurements& all);
  void write() const;
  [[nodiscard]] plan::Problem problem(Operation operation) const;

  const Options options_;
  int ranks_ = 0;
  int hosts_ = 1;
  std::vector<Timed> timed_;
  std::vector<std::string> rules_;
  double worst_ = 1;  // of what was chosen, to the fastest
};

const Algorithm& algorithm_of(Operation operation, std::string_view name) {
  return *plan::find_algorithm(operation, name);
}

Operation read_operation(const std::string& word) {
  for (const Operation each : plan::all_operations()) {
    if (plan::name(each) == word) return each;
  }
  throw CLI::ValidationError("--operations", fmt::format("what is {}?", quote(word)));
}

std::string quoted_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (const char each : word) quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return quoted + "'";
}

/// What it prints; nothing when it fails, which it has then told the reason of.
std::optional<std::string> output_of(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return {};
  std::string output;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    output.append(buffer, count);
  }
  return ::pclose(pipe) == 0 ? std::optional(output) : std::nullopt;
}

plan::Problem Tuner::problem(Operation operation) const {
  const auto ranks = static_cast<std::uint32_t>(ranks_);
  const auto hosts = static_cast<std::uint32_t>(hosts_);
  return {.operation = operation, .size = ranks, .ranks_per_host = (ranks - 1) / hosts + 1};
}

std::vector<std::string_view> Tuner::names_of(Operation operation) const {
  std::vector<std::string_view> names;
  for (const Algorithm& each : plan::catalog()) {
    if (can_solve(each, problem(operation))) names.push_back(each.name);
  }
  return names;
}

std::optional<Times> Tuner::run_once(Operation operation, std::string_view name) const {
  // What an earlier run has found is not what is chosen by itself.
  std::string command = "HOCKET_TUNING_FILE= HOCKET_ALGORITHM=";
  if (name != automatic) command += fmt::format("{}={}", plan::name(operation), name);
  command += ' ';
  const std::string own = std::filesystem::read_symlink("/proc/self/exe");
  if (options_.launch.empty()) {
    command += quoted_for_shell(own);
  } else {
    command += options_.launch + " " + quoted_for_shell(own);
  }
  command += fmt::format(" {} --json", plan::name(operation));
  if (operation != Operation::barrier) {
    command += fmt::format(" --sizes {}", fmt::join(options_.sizes, ","));
  }
  if (options_.launch.empty()) command += fmt::format(" --ranks {}", options_.ranks);
  const auto output = output_of(command);
  if (!output) return {};
  const auto document = nlohmann::json::parse(*output);
  Times times{.ranks = document["ranks"], .hosts = document["conditions"]["hosts"]};
  for (const auto& row : document["rows"]) times.by_size[row["bytes"]] = row["p50_s"];
  return times;
}

/// In each round all take their turn.
void Tuner::take(Operation operation, Measurements& all) {
  std::vector<std::string_view> names = names_of(operation);
  names.insert(names.begin(), automatic);
  for (int round = 0; round < options_.rounds; ++round) {
    for (const std::string_view name : names) {
      fmt::print(stderr, "{}, round {} of {}: {}\n", plan::name(operation), round + 1,
                 options_.rounds, name == automatic ? "automatic" : name);
      const auto times = run_once(operation, name);
      if (!times) throw std::runtime_error("tune: the measurement failed");
      for (const auto& [size, seconds] : times->by_size) all[size][name].push_back(seconds);
    }
    std::erase_if(names, [&](std::string_view name) {
      return name != automatic && std::ranges::all_of(all, [&](const auto& of_size) {
               const auto& by_name = of_size.second;
               double fastest = by_name.begin()->second.front();
               for (const auto& [other, seconds] : by_name) fastest = std::min(fastest, seconds[0]);
               return by_name.at(name)[0] > hopeless * fastest;
             });
    });
  }
}

/// The fastest but what is chosen by itself.
std::string_view fastest(const std::map<std::string_view, std::vector<double>>& by_name) {
  std::string_view best;
  for (const auto& [name, seconds] : by_name) {
    if (name == automatic) continue;
    if (best.empty() || median(seconds) < median(by_name.at(best))) best = name;
  }
  return best;
}

void Tuner::print(Operation operation, const Measurements& all) const {
  fmt::print("\n{}, {} ranks on {} hosts: medians of {} rounds, in microseconds\n",
             plan::name(operation), ranks_, hosts_, options_.rounds);
  fmt::print("{:>10} {:>12} {:>12}  {:<20} {:>8}\n", "size", "automatic", "fastest", "", "ratio");
  for (const auto& [size, by_name] : all) {
    const std::string_view best = fastest(by_name);
    const double chosen = median(by_name.at(automatic));
    const double least = median(by_name.at(best));
    fmt::print("{:>10} {:>12.1f} {:>12.1f}  {:<20} {:>8.2f}\n", format_size(size), us(chosen),
               us(least), best, chosen / least);
  }
}

/// One for each stretch of sizes where the same algorithm is faster than what is chosen.
void Tuner::add_rules(Operation operation, const Measurements& all) {
  const auto between = [](std::uint64_t one, std::uint64_t other) {
    return static_cast<std::uint64_t>(
        std::sqrt(static_cast<double>(one) * static_cast<double>(other)));
  };
  std::string_view last;
  std::string first_size = "0";
  const auto end = [&](const std::string& last_size) {
    if (last.empty()) return;
    rules_.push_back(fmt::format("{}:{}-{}@{} = {}", plan::name(operation), first_size, last_size,
                                 ranks_, last));
  };
  std::uint64_t before = 0;
  for (const auto& [size, by_name] : all) {
    const std::string_view best = fastest(by_name);
    const double ratio = median(by_name.at(automatic)) / median(by_name.at(best));
    worst_ = std::max(worst_, ratio);
    const std::string_view now = ratio > worth_a_rule ? best : std::string_view();
    if (now != last) {
      const std::uint64_t border = before == 0 ? 0 : between(before, size);
      end(std::to_string(border));
      first_size = std::to_string(before == 0 ? 0 : border + 1);
      last = now;
    }
    before = size;
  }
  end("");
}

void Tuner::measure(Operation operation) {
  Measurements all;
  take(operation, all);
  print(operation, all);
  add_rules(operation, all);
  for (const auto& [size, by_name] : all) {
    for (const auto& [name, seconds] : by_name) {
      if (name == automatic) continue;
      timed_.push_back({.algorithm = &algorithm_of(operation, name),
                        .problem = problem(operation),
                        .bytes = size,
                        .seconds = median(seconds)});
    }
  }
}

void Tuner::write() const {
  const sim::Network usual = sim::find_preset(sim::usual_network).value();
  const sim::Network fitted = fit(usual, timed_);
  std::ofstream file(options_.out);
  file << fmt::format("# By hocket-bench tune: {} ranks on {} hosts.\nhocket-tuning 1\n", ranks_,
                      hosts_);
  file << fmt::format("network = {}\n", sim::usual_network);
  const auto before = sim::parameters(usual);
  const auto after = sim::parameters(fitted);
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i].value == before[i].value) continue;
    file << fmt::format("network.{} = {}\n", after[i].name, after[i].value);
  }
  for (const std::string& rule : rules_) file << rule << '\n';
  for (const Timed& each : timed_) {
    file << fmt::format("measured {}:{}@{} {} = {:.2f}us\n", plan::name(each.problem.operation),
                        each.bytes, each.problem.size, each.algorithm->name, us(each.seconds));
  }
  if (!file.flush())
    throw std::runtime_error(fmt::format("tune: {} can't be written", options_.out));
  fmt::print(
      "\nWhat is chosen by itself takes at most {:.2f} times as long as the fastest.\n"
      "The estimates are wrong by {:.0f} %, and by {:.0f} % with the numbers that fit best.\n"
      "{} rules, these numbers and what was measured are in {}; to use it:\n"
      "  export HOCKET_TUNING_FILE={}\n",
      worst_, 100 * error_of(usual, timed_), 100 * error_of(fitted, timed_), rules_.size(),
      options_.out, std::filesystem::absolute(options_.out).string());
}

void Tuner::run() {
  std::vector<Operation> operations;
  for (const std::string& each : options_.operations) operations.push_back(read_operation(each));
  const auto first = run_once(Operation::barrier, automatic);
  if (!first) throw std::runtime_error("tune: the ranks can't be started");
  ranks_ = first->ranks;
  hosts_ = first->hosts;
  for (const Operation each : operations) measure(each);
  write();
}

}  // namespace

void add_tune_command(CLI::App& program) {
  const auto options = std::make_shared<Options>();
  CLI::App* const parser = program.add_subcommand(
      "tune", "Measure all algorithms here, and write a tuning file with what is fastest");
  parser->add_option("--ranks", options->ranks, "So many on this machine")
      ->check(CLI::Range(2, 4096))
      ->default_val(2);
  parser->add_option("--launch", options->launch,
                     "What starts the ranks instead, with our variables: \"hocket run --hosts a,b "
                     "-x HOCKET_ALGORITHM -x HOCKET_TUNING_FILE --\"");
  parser->add_option("--operations", options->operations, "Which")
      ->delimiter(',')
      ->capture_default_str();
  parser->add_option("--sizes", options->sizes, "Bytes of the vector")
      ->delimiter(',')
      ->capture_default_str();
  parser->add_option("--rounds", options->rounds, "In which all take their turn")
      ->check(CLI::Range(1, 99))
      ->capture_default_str();
  parser->add_option("--out", options->out, "The file to write")->capture_default_str();
  parser->callback([options] { Tuner(*options).run(); });
}

}  // namespace hocket::bench
