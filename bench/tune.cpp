#include "tune.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/config.hpp"
#include "base/text.hpp"
#include "choose/cost.hpp"
#include "choose/parameters.hpp"
#include "choose/selector.hpp"
#include "choose/tuning.hpp"
#include "comm/tuning.hpp"
#include "fit.hpp"
#include "measure.hpp"
#include "race.hpp"

namespace hocket::bench {
namespace {

using plan::Operation;

constexpr double worth_a_rule = 1.05;  // what is chosen without may take so many times as long

struct TuneOptions {
  int ranks = 2;
  std::string launch = {};
  std::vector<std::string> operations = {"all_reduce", "reduce_scatter", "all_gather", "broadcast"};
  std::vector<std::string> sizes = {"1K", "4K", "16K", "64K", "512K", "4M", "32M"};
  int rounds = 3;
  std::string again = {};  // a file
  std::string out = "hocket-tuning.txt";
};

std::set<std::uint64_t> read_sizes(const std::vector<std::string>& words) {
  std::set<std::uint64_t> sizes;
  for (const std::string& each : words) {
    const auto size = parse_size(each);
    if (!size) throw program::UsageError("--sizes", fmt::format("what is {}?", quote(each)));
    sizes.insert(*size);
  }
  return sizes;
}

std::vector<Operation> read_operations(const std::vector<std::string>& words) {
  std::vector<Operation> operations;
  for (const std::string& word : words) {
    const auto all = plan::all_operations();
    const auto found =
        std::ranges::find_if(all, [&](Operation each) { return plan::name(each) == word; });
    if (found == all.end()) {
      throw program::UsageError("--operations", fmt::format("what is {}?", quote(word)));
    }
    operations.push_back(*found);
  }
  return operations;
}

class Tuner {
 public:
  explicit Tuner(const TuneOptions& options)
      : options_(options),
        operations_(read_operations(options.operations)),
        race_({.ranks = options.ranks,
               .launch = options.launch,
               .sizes = read_sizes(options.sizes),
               .rounds = options.rounds}) {}

  void run();

 private:
  void measure(Operation operation);
  void print(Operation operation, const BySize& all) const;
  void add_rules(Operation operation, const BySize& all, const choose::Selector& selector);
  void write();

  const TuneOptions options_;
  const std::vector<Operation> operations_;
  const Race race_;
  std::map<Operation, BySize> measured_;
  std::vector<Timed> timed_;
  std::vector<std::string> rules_;
  double worst_ = 1;  // of what was chosen, to the fastest
};

/// What a file says was measured, with as many ranks.
BySize read_measured(const std::string& path, Operation operation, int ranks) {
  BySize all;
  for (const choose::Measured& each : read_tuning(process_config(), {}, path).value().measured) {
    if (each.algorithm->operation != operation || each.ranks != static_cast<std::uint64_t>(ranks)) {
      continue;
    }
    const std::uint32_t pieces =
        choose::is_pipeline(*each.algorithm) ? std::max(each.pieces, 1U) : 0;
    all[each.bytes][{each.algorithm, pieces}] = {each.seconds};
  }
  return all;
}

/// The fastest but what is chosen by itself.
Contender fastest(const Times& times) {
  Contender best;
  for (const auto& [contender, seconds] : times) {
    if (contender == automatic) continue;
    if (best == automatic || median(seconds) < median(times.at(best))) best = contender;
  }
  return best;
}

void Tuner::print(Operation operation, const BySize& all) const {
  fmt::print("\n{}, {} ranks on {} hosts: medians, in microseconds\n", plan::name(operation),
             race_.ranks(), race_.hosts());
  fmt::print("{:>10} {:>12} {:>12}  {:<20} {:>8}\n", "size", "automatic", "fastest", "", "ratio");
  for (const auto& [size, times] : all) {
    const Contender best = fastest(times);
    const double chosen = median(times.at(automatic));
    const double least = median(times.at(best));
    fmt::print("{:>10} {:>12.1f} {:>12.1f}  {:<20} {:>8.2f}\n", format_size(size), us(chosen),
               us(least), best.name(), chosen / least);
  }
}

Contender contender_of(const choose::Choice& choice) {
  return {choice.algorithm, choose::is_pipeline(*choice.algorithm) ? choice.pieces : 0};
}

/// As a rule has it: without the number of its pieces where it would have them anyway, as other
/// sizes want others.
Contender for_rule(Contender contender, const plan::Problem& problem, std::uint64_t size,
                   const choose::Selector& selector) {
  const std::uint32_t usual = selector.priced(*contender.algorithm, problem, size, 0).pieces;
  if (contender.pieces == usual) contender.pieces = 0;
  return contender;
}

/// One for each stretch of sizes where the same algorithm, in the same pieces, is faster than what
/// is chosen otherwise, or that was not measured.
void Tuner::add_rules(Operation operation, const BySize& all, const choose::Selector& selector) {
  const auto between = [](std::uint64_t one, std::uint64_t other) {
    return static_cast<std::uint64_t>(
        std::sqrt(static_cast<double>(one) * static_cast<double>(other)));
  };
  Contender last = automatic;  // which needs no rule
  std::string first_size = "0";
  const auto end = [&](const std::string& last_size) {
    if (last == automatic) return;
    rules_.push_back(fmt::format("{}:{}-{}@{} = {}", plan::name(operation), first_size, last_size,
                                 race_.ranks(), last.name()));
  };
  std::uint64_t before = 0;
  for (const auto& [size, times] : all) {
    const Contender best = fastest(times);
    const double least = median(times.at(best));
    if (const auto itself = times.find(automatic); itself != times.end()) {
      worst_ = std::max(worst_, median(itself->second) / least);
    }
    const auto chosen = times.find(contender_of(selector.choose(race_.problem(operation), size)));
    const bool is_good = chosen != times.end() && median(chosen->second) <= worth_a_rule * least;
    const Contender now =
        is_good ? automatic : for_rule(best, race_.problem(operation), size, selector);
    if (now != last) {
      const std::uint64_t border = before == 0 ? 0 : between(before, size);
      end(std::to_string(border));
      first_size = std::to_string(before == 0 ? 0 : border + 1);
      last = now;
    }
    before = size;
  }
  if (last.pieces > 1) last.pieces = 0;  // what is good at one size is too few far beyond
  end("");
}

void Tuner::measure(Operation operation) {
  const BySize& all = measured_[operation] =
      options_.again.empty() ? race_.run(operation)
                             : read_measured(options_.again, operation, race_.ranks());
  if (options_.again.empty()) print(operation, all);
  for (const auto& [size, times] : all) {
    for (const auto& [contender, seconds] : times) {
      if (contender == automatic) continue;
      Timed& timed = timed_.emplace_back(Timed{.algorithm = contender.algorithm,
                                               .problem = race_.problem(operation),
                                               .bytes = size,
                                               .seconds = median(seconds)});
      timed.problem.pieces = std::max(contender.pieces, 1U);
    }
  }
}

void Tuner::write() {
  const choose::Network usual = choose::find_preset(choose::usual_network).value();
  choose::Network start = usual;
  start.processors = race_.network().processors;
  const choose::Network fitted = fit(start, timed_);
  for (const auto& [operation, all] : measured_) {
    choose::Network of_job = fitted;
    of_job.ranks_per_host = race_.problem(operation).ranks_per_host;
    add_rules(operation, all, choose::Selector(of_job, {}));
  }
  std::ofstream file(options_.out);
  file << fmt::format("# By hocket-bench tune: {} ranks on {} hosts.\nhocket-tuning 1\n",
                      race_.ranks(), race_.hosts());
  file << fmt::format("network = {}\n", choose::usual_network);
  const auto before = choose::parameters(usual);
  const auto after = choose::parameters(fitted);
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (after[i].value == before[i].value) continue;
    file << fmt::format("network.{} = {}\n", after[i].name, after[i].value);
  }
  for (const std::string& rule : rules_) file << rule << '\n';
  for (const auto& [operation, all] : measured_) {
    for (const auto& [size, times] : all) {
      for (const auto& [contender, seconds] : times) {
        if (contender == automatic) continue;
        file << fmt::format("measured {}:{}@{} {} = {:.2f}us\n", plan::name(operation), size,
                            race_.ranks(), contender.name(), us(median(seconds)));
      }
    }
  }
  if (!file.flush())
    throw std::runtime_error(fmt::format("tune: {} can't be written", options_.out));
  if (options_.again.empty()) {
    fmt::print("\nWhat is chosen by itself takes at most {:.2f} times as long as the fastest.\n",
               worst_);
  }
  fmt::print(
      "{} wrong by {:.0f} %, and by {:.0f} % with the numbers that fit best.\n"
      "{} rules, these numbers and what was measured are in {}; to use it:\n"
      "  export HOCKET_TUNING_FILE={}\n",
      start.processors > 0 ? "The simulator is" : "The estimates are",
      100 * error_of(start, timed_), 100 * error_of(fitted, timed_), rules_.size(), options_.out,
      std::filesystem::absolute(options_.out).string());
}

void Tuner::run() {
  for (const Operation each : operations_) measure(each);
  if (timed_.empty()) {
    throw std::runtime_error(fmt::format("tune: nothing in {} is of {} ranks and these operations",
                                         options_.again, race_.ranks()));
  }
  write();
}

}  // namespace

void add_tune_command(program::Parser& program) {
  const auto options = std::make_shared<TuneOptions>();
  program::Parser& parser = program.add_command(
      "tune", "Measure all algorithms here, and write a tuning file with what is fastest");
  parser.add_option("--ranks", &options->ranks, "So many on this machine")
      .in_range(2, 4096)
      .with_default();
  parser.add_option("--launch", &options->launch,
                    "What starts the ranks instead, with our variables: \"hocket run --hosts a,b "
                    "-x HOCKET_ALGORITHM -x HOCKET_TUNING_FILE --\"");
  parser.add_option("--operations", &options->operations, "Which").comma_separated().with_default();
  parser.add_option("--sizes", &options->sizes, "Bytes of the vector")
      .comma_separated()
      .with_default();
  parser
      .add_option("--rounds", &options->rounds,
                  "In which all take their turn; six times as many up to 16K")
      .in_range(1, 99)
      .with_default();
  parser.add_option(
      "--again", &options->again,
      "Measure nothing, but make a file anew of what this one says was measured of these "
      "operations and as many ranks");
  parser.add_option("--out", &options->out, "The file to write").with_default();
  parser.on_run([options] {
    Tuner(*options).run();
    return program::exit_success;
  });
}

}  // namespace hocket::bench
