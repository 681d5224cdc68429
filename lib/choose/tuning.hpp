// What the selector is told: a network's numbers, and rules that go before the estimate. A tuning
// file holds both; a person or a measurement may have written it.
#pragma once

#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "choose/network.hpp"
#include "choose/rules.hpp"

namespace hocket::choose {

/// How long an algorithm once took, of so many ranks.
struct Measured {
  const plan::Algorithm* algorithm = nullptr;
  std::uint32_t pieces = 0;  // of a pipeline; 0: the file does not say
  std::uint64_t bytes = 0;
  std::uint64_t ranks = 0;
  double seconds = 0;
};

struct Tuning {
  Network network = {};
  std::vector<Rule> rules = {};
  std::vector<Measured> measured = {};  // for people; nothing is chosen by it
};

/// The text of a tuning file:
///   hocket-tuning 1                the first line; the form's version
///   network = ethernet-10g         all numbers of a preset; before the next
///   network.latency = 12us         one of them (parameters.hpp)
///   all_reduce:0-4K = one_shot     rules (rules.hpp)
///   measured all_reduce:1M@4 ring = 1.2ms            and double_tree/4 in so many pieces
/// What is behind a # in its line is not read, nor are empty lines. `base` is the network as far as
/// the file does not say. Fails with the source (the file's name), the line and the word.
[[nodiscard]] Result<Tuning> parse_tuning(std::string_view text, std::string_view source,
                                          const Network& base);

}  // namespace hocket::choose
