// All algorithms of an operation, and what is chosen by itself, in turns: each in runs of
// hocket-bench, on ranks that are started for it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "plan/problem.hpp"
#include "sim/network.hpp"

namespace hocket::bench {

struct RaceOptions {
  int ranks = 0;            // on this machine, if nothing else starts them
  std::string launch = {};  // what starts them, for the shell
  std::set<std::uint64_t> sizes = {};
  int rounds = 0;
};

/// Stands for what is chosen by itself, among the names of algorithms.
inline constexpr std::string_view automatic = "";

/// Seconds in each round.
using ByName = std::map<std::string_view, std::vector<double>>;
using BySize = std::map<std::uint64_t, ByName>;

class Race {
 public:
  /// Starts the ranks, to see how many there are. Throws std::runtime_error where that fails.
  explicit Race(RaceOptions options);

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int hosts() const noexcept { return hosts_; }
  /// What the ranks take theirs for without a tuning file.
  [[nodiscard]] sim::Network network() const;
  [[nodiscard]] plan::Problem problem(plan::Operation operation) const;

  /// Who is far behind is not measured in each round, nor at each size. Throws std::runtime_error.
  [[nodiscard]] BySize run(plan::Operation operation) const;

 private:
  /// Sizes that a run of hocket-bench measures.
  struct Stage {
    std::vector<std::uint64_t> sizes = {};
    double expected = 0;  // seconds that a call of the last takes, as far as is known
  };
  /// A run of hocket-bench.
  struct Run {
    int ranks = 0;
    int hosts = 0;
    int machines = 0;
    int processors = 0;                            // of rank 0's machine
    std::map<std::uint64_t, double> by_size = {};  // p50, seconds
  };
  using Names = std::vector<std::string_view>;

  [[nodiscard]] Run run_once(plan::Operation operation, std::string_view name,
                             const Stage& stage) const;
  [[nodiscard]] Names names_of(plan::Operation operation) const;
  [[nodiscard]] std::vector<Stage> stages(plan::Operation operation) const;
  [[nodiscard]] BySize take(plan::Operation operation, Names names, const Stage& stage) const;

  RaceOptions options_;
  int ranks_ = 0;
  int hosts_ = 1;
  int processors_ = 1;             // of a machine
  bool has_shared_hosts_ = false;  // all are one machine, and more than its processors
};

}  // namespace hocket::bench
