#include "race.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "choose/cost.hpp"
#include "measure.hpp"
#include "plan/catalog.hpp"
#include "program/json.hpp"

namespace hocket::bench {
namespace {

using plan::Operation;

constexpr double hopeless = 3;  // times the fastest, at every size of a run: in one round only
/// Times up to this size differ most from run to run, and get so many times the rounds.
constexpr std::uint64_t tiny = 16 << 10;
constexpr int tiny_times = 6;
/// From here on a message's bytes are what takes time. So each larger size has runs of its own,
/// without the algorithms that took `outrun` times as long as the fastest at the size before.
constexpr std::uint64_t large = 1 << 20;
constexpr double outrun = 1.2;
/// Calls that take longer, in seconds, are few in a run, and not checked; much longer ones are in
/// one round: they differ little.
constexpr double long_call = 0.1;
constexpr double very_long_call = 0.5;

std::string quoted_for_shell(const std::string& word) {
  std::string quoted = "'";
  for (const char each : word) quoted += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return quoted + "'";
}

/// What it prints. When it fails it has told the reason.
std::string output_of(const std::string& command) {
  FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("tune: no shell can be started");
  std::string output;
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe)) {
    output.append(buffer, count);
  }
  if (::pclose(pipe) != 0) throw std::runtime_error("tune: a measurement failed: " + command);
  return output;
}

/// The least of the first round.
double lowest(const Times& times) {
  double seconds = times.begin()->second.front();
  for (const auto& [contender, each] : times) seconds = std::min(seconds, each.front());
  return seconds;
}

bool is_behind(const Times& times, const Contender& contender, double factor) {
  const auto found = times.find(contender);
  return contender != automatic && found != times.end() &&
         found->second.front() > factor * lowest(times);
}

}  // namespace

std::string Contender::name() const {
  if (algorithm == nullptr) return {};
  if (pieces == 0) return std::string(algorithm->name);
  return fmt::format("{}/{}", algorithm->name, pieces);
}

Race::Race(RaceOptions options) : options_(std::move(options)) {
  const Run first = run_once(Operation::barrier, automatic, {});
  ranks_ = first.ranks;
  hosts_ = first.hosts;
  processors_ = std::max(first.processors, 1);
  has_shared_hosts_ = first.machines == 1 && hosts_ > 1;
}

choose::Network Race::network() const {
  choose::Network network = choose::find_preset(choose::usual_network).value();
  const std::uint32_t here = problem(Operation::barrier).ranks_per_host;
  const auto processors = static_cast<std::uint32_t>(processors_);
  if (has_shared_hosts_) {
    network.processors = processors;
  } else {
    network = choose::crowded(network, (here - 1) / processors + 1);
  }
  network.ranks_per_host = here;
  return network;
}

plan::Problem Race::problem(Operation operation) const {
  const auto ranks = static_cast<std::uint32_t>(ranks_);
  const auto hosts = static_cast<std::uint32_t>(hosts_);
  return {.operation = operation, .size = ranks, .ranks_per_host = (ranks - 1) / hosts + 1};
}

Race::Contenders Race::contenders(Operation operation) const {
  Contenders all = {automatic};
  for (const plan::Algorithm& each : plan::catalog()) {
    if (!can_solve(each, problem(operation))) continue;
    all.push_back({&each});
    if (choose::is_pipeline(each)) all.push_back({&each, 1});
  }
  return all;
}

std::uint32_t Race::usual_pieces(const plan::Algorithm& algorithm, std::uint64_t size) const {
  return choose::best_pieces(algorithm, problem(algorithm.operation), static_cast<double>(size),
                             network());
}

Race::Run Race::run_once(Operation operation, const Contender& contender,
                         const Stage& stage) const {
  // What an earlier run has found is not what is chosen by itself.
  std::string command = "HOCKET_TUNING_FILE= HOCKET_ALGORITHM=";
  if (contender != automatic) {
    command += fmt::format("{}={}", plan::name(operation), contender.name());
  }
  if (!options_.launch.empty()) command += " " + options_.launch;
  const std::string own = std::filesystem::read_symlink("/proc/self/exe");
  command += fmt::format(" {} {} --json", quoted_for_shell(own), plan::name(operation));
  if (operation != Operation::barrier) {
    command += fmt::format(" --sizes {}", joined(stage.sizes, ","));
  }
  if (stage.expected > long_call) {
    command +=
        fmt::format(" --check 0 --warmup 1 --iters {}", stage.expected > very_long_call ? 1 : 2);
  }
  if (options_.launch.empty()) command += fmt::format(" --ranks {}", options_.ranks);
  const auto document = program::Json::parse(output_of(command));
  const program::Json& conditions = document.at("conditions");
  Run run{.ranks = document.at("ranks").get<int>(),
          .hosts = conditions.at("hosts").get<int>(),
          .machines = conditions.at("machines").get<int>(),
          .processors = conditions.at("processors").get<int>()};
  for (const program::Json& row : document.at("rows").items()) {
    run.by_size[row.at("bytes").get<std::uint64_t>()] = row.at("p50_s").get<double>();
  }
  return run;
}

/// All tiny sizes in one, and all others that are not large.
std::vector<Race::Stage> Race::stages(Operation operation) const {
  if (operation == Operation::barrier) return {{}};
  std::vector<Stage> all;
  for (const std::uint64_t size : options_.sizes) {
    const bool is_next =
        all.empty() || size > large || (size > tiny && all.back().sizes.back() <= tiny);
    if (is_next) all.emplace_back();
    all.back().sizes.push_back(size);
  }
  return all;
}

BySize Race::take(Operation operation, Contenders contenders, const Stage& stage) const {
  BySize all;
  std::erase_if(contenders, [&](const Contender& each) {  // which have one piece by themselves
    return each.pieces == 1 && std::ranges::all_of(stage.sizes, [&](std::uint64_t size) {
             return usual_pieces(*each.algorithm, size) == 1;
           });
  });
  const bool is_tiny = !stage.sizes.empty() && stage.sizes.back() <= tiny;
  const int rounds = stage.expected > very_long_call ? 1
                     : is_tiny                       ? tiny_times * options_.rounds
                                                     : options_.rounds;
  for (int round = 0; round < rounds; ++round) {
    for (const Contender& each : contenders) {
      fmt::print(stderr, "{}, up to {}, round {} of {}: {}\n", plan::name(operation),
                 stage.sizes.empty() ? "0" : format_size(stage.sizes.back()), round + 1, rounds,
                 each == automatic ? "automatic" : each.name());
      for (const auto& [size, seconds] : run_once(operation, each, stage).by_size) {
        all[size][each].push_back(seconds);
      }
    }
    std::erase_if(contenders, [&](const Contender& each) {
      return std::ranges::all_of(
          all, [&](const auto& of_size) { return is_behind(of_size.second, each, hopeless); });
    });
  }
  return all;
}

/// Whoever had as many pieces as the ranks chose, in these.
Times Race::in_pieces(std::uint64_t size, const Times& times) const {
  Times all;
  for (const auto& [contender, seconds] : times) {
    Contender exact = contender;
    if (exact != automatic && exact.pieces == 0 && choose::is_pipeline(*exact.algorithm)) {
      exact.pieces = usual_pieces(*exact.algorithm, size);
    }
    all[exact].insert(all[exact].end(), seconds.begin(), seconds.end());
  }
  return all;
}

BySize Race::run(Operation operation) const {
  BySize all;
  Contenders in_race = contenders(operation);
  for (Stage& stage : stages(operation)) {
    if (!all.empty() && stage.sizes.back() > large) {
      const auto& [size, times] = *all.rbegin();
      stage.expected = median(times.at(automatic)) * static_cast<double>(stage.sizes.back()) /
                       static_cast<double>(size);
    }
    all.merge(take(operation, in_race, stage));
    if (all.rbegin()->first < large) continue;
    const Times& times = all.rbegin()->second;
    std::erase_if(in_race, [&](const Contender& each) { return is_behind(times, each, outrun); });
  }
  for (auto& [size, times] : all) times = in_pieces(size, times);
  return all;
}

}  // namespace hocket::bench
