// Which algorithm, and in how many pieces, for an operation on so many bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "choose/network.hpp"
#include "choose/rules.hpp"
#include "plan/catalog.hpp"

namespace hocket::choose {

struct Choice {
  const plan::Algorithm* algorithm = nullptr;
  std::uint32_t pieces = 1;
  double seconds = 0;          // estimated
  const Rule* rule = nullptr;  // that says so, of the selector; null: the estimate says so
};

/// What an algorithm must be able to do.
struct Needs {
  bool is_uneven = false;  // chunks differ in size
  // As plan::Algorithm:
  bool only_moves = false;
  bool keeps_order = false;
};

/// Says the same on every rank that has the same network and rules: ranks which choose differently
/// would wait for each other for ever.
class Selector {
 public:
  Selector(const Network& network, std::vector<Rule> rules);
  /// Returns a copy for communicators with so many ranks on each host.
  [[nodiscard]] Selector with_ranks_per_host(std::uint32_t ranks) const;

  /// The first rule that fits, else what should cost least, of the algorithms that can do it; no
  /// algorithm where none can. `problem` without its pieces; `bytes` of the vector.
  [[nodiscard]] Choice choose(const plan::Problem& problem, std::uint64_t bytes,
                              const Needs& needs = {}) const;

  /// All that it could be, as if there were no rules, the cheapest first.
  [[nodiscard]] std::vector<Choice> candidates(const plan::Problem& problem, std::uint64_t bytes,
                                               const Needs& needs = {}) const;
  /// One of them; 0 pieces: as many as should cost least.
  [[nodiscard]] Choice priced(const plan::Algorithm& algorithm, const plan::Problem& problem,
                              std::uint64_t bytes, std::uint32_t pieces) const;

 private:
  Network network_;
  std::vector<Rule> rules_;
};

}  // namespace hocket::choose
