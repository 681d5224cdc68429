// What `hocket sim` shows: every algorithm of an operation at every size, on one network.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "choose/network.hpp"
#include "plan/catalog.hpp"

namespace hocket::cli {

struct Sweep {
  plan::Problem problem = {};  // its pieces: 0 for as many as are best
  choose::Network network = {};
  std::vector<std::uint64_t> sizes = {};  // bytes of the vector
  std::vector<const plan::Algorithm*> algorithms = {};
  std::uint64_t steps_max = 1 << 24;  // of all ranks together; else the formula has to do
};

struct Outcome {
  const plan::Algorithm* algorithm = nullptr;
  std::uint32_t pieces = 1;
  bool is_simulated = false;  // else it is an estimate
  double seconds = 0;
  double bound_seconds = 0;
  std::string busiest_link = {};
  double busiest_share = 0;
};

/// By size, and for each by algorithm.
using Outcomes = std::vector<std::vector<Outcome>>;
[[nodiscard]] Result<Outcomes> run(const Sweep& sweep);

/// The fastest one's place.
[[nodiscard]] std::size_t best(const std::vector<Outcome>& outcomes) noexcept;

}  // namespace hocket::cli
