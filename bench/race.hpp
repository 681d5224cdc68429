// All algorithms of an operation, pipelines also in one piece, and what is chosen by itself, in
// turns: each in runs of hocket-bench, on ranks that are started for it.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "choose/network.hpp"
#include "plan/catalog.hpp"
#include "plan/problem.hpp"

namespace hocket::bench {

struct RaceOptions {
  int ranks = 0;            // on this machine, if nothing else starts them
  std::string launch = {};  // what starts them, for the shell
  std::set<std::uint64_t> sizes = {};
  int rounds = 0;
};

struct Contender {
  const plan::Algorithm* algorithm = nullptr;  // null: what is chosen by itself
  std::uint32_t pieces = 0;                    // of a pipeline

  /// As rules call it: "ring", "chain/4"; empty where it is chosen.
  [[nodiscard]] std::string name() const;

  bool operator==(const Contender& other) const = default;
  bool operator<(const Contender& other) const noexcept {
    return std::tie(algorithm, pieces) < std::tie(other.algorithm, other.pieces);
  }
};
inline constexpr Contender automatic = {};

/// Seconds in each round.
using Times = std::map<Contender, std::vector<double>>;
using BySize = std::map<std::uint64_t, Times>;

class Race {
 public:
  /// Starts the ranks, to see how many there are. Throws std::runtime_error where that fails.
  explicit Race(RaceOptions options);

  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  [[nodiscard]] int hosts() const noexcept { return hosts_; }
  /// What the ranks take theirs for without a tuning file.
  [[nodiscard]] choose::Network network() const;
  [[nodiscard]] plan::Problem problem(plan::Operation operation) const;

  /// Who is far behind is not measured in each round, nor at each size. Pipelines have the pieces
  /// that they had. Throws std::runtime_error.
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
  using Contenders = std::vector<Contender>;

  [[nodiscard]] Run run_once(plan::Operation operation, const Contender& contender,
                             const Stage& stage) const;
  [[nodiscard]] Contenders contenders(plan::Operation operation) const;
  [[nodiscard]] std::vector<Stage> stages(plan::Operation operation) const;
  [[nodiscard]] BySize take(plan::Operation operation, Contenders contenders,
                            const Stage& stage) const;
  [[nodiscard]] Times in_pieces(std::uint64_t size, const Times& times) const;
  [[nodiscard]] std::uint32_t usual_pieces(const plan::Algorithm& algorithm,
                                           std::uint64_t size) const;

  RaceOptions options_;
  int ranks_ = 0;
  int hosts_ = 1;
  int processors_ = 1;             // of a machine
  bool has_shared_hosts_ = false;  // all are one machine
};

}  // namespace hocket::bench
