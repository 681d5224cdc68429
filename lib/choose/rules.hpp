// Rules that say which algorithm to take for what, instead of the one that should cost least: the
// variable HOCKET_ALGORITHM, or a file of measured ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "plan/catalog.hpp"

namespace hocket::choose {

/// Both ends are in it.
struct Span {
  std::uint64_t first = 0;
  std::uint64_t last = UINT64_MAX;

  [[nodiscard]] bool holds(std::uint64_t number) const noexcept {
    return first <= number && number <= last;
  }
};

struct Rule {
  const plan::Algorithm* algorithm = nullptr;  // and so, for which operation
  Span bytes = {};                             // of the vector
  Span ranks = {};
  std::uint32_t pieces = 0;  // of a pipeline; 0: as many as should cost least
  // For people: the rule as it was written, and where.
  std::string text = {};
  std::string source = {};
};

/// Rules with commas or ends of lines between them; what is behind a # in its line is not read.
///   ring                          every operation that has such an algorithm
///   all_reduce=ring               one operation
///   all_reduce:0-4K=one_shot      vectors of so many bytes; an end may be missing
///   all_reduce:1M-@2-8=two_shot   and worlds of so many ranks
///   broadcast=chain/16            in so many pieces
/// Fails on a word that is none of these, which it names, and the source, if it is known.
[[nodiscard]] Result<std::vector<Rule>> parse_rules(std::string_view text,
                                                    std::string_view source = {});

}  // namespace hocket::choose
