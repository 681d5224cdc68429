// What is known of hosts from the cards of all ranks.
#include "comm/card.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace hocket::comm;

namespace {

/// Of hosts with so many ranks each, in a row, and so many processors.
std::vector<Card> cards_of(const std::vector<std::uint32_t>& hosts, std::uint32_t processors) {
  std::vector<Card> cards;
  for (const std::uint32_t ranks : hosts) {
    for (std::uint32_t i = 0; i < ranks; ++i) {
      cards.push_back({.local_rank = i, .local_size = ranks, .processors = processors});
    }
  }
  return cards;
}

}  // namespace

TEST_CASE("hosts have as many ranks each as all but the last have") {
  CHECK(ranks_per_host(cards_of({4}, 2)) == 4);
  CHECK(ranks_per_host(cards_of({4, 4, 3}, 2)) == 4);
  CHECK(ranks_per_host(cards_of({1, 1, 1}, 2)) == 1);
  CHECK(ranks_per_host(cards_of({3, 4}, 2)) == 1);
  std::vector<Card> swapped = cards_of({2, 2}, 2);
  std::swap(swapped[1], swapped[2]);
  CHECK(ranks_per_host(swapped) == 1);
}

TEST_CASE("of ranks that share a processor, where they are the most, one more counts for all") {
  CHECK(ranks_per_processor(cards_of({1, 1}, 8)) == 1);
  CHECK(ranks_per_processor(cards_of({2, 1}, 2)) == 1);
  CHECK(ranks_per_processor(cards_of({2, 3}, 2)) == 2);
  CHECK(ranks_per_processor(cards_of({8, 1}, 2)) == 4);
  CHECK(ranks_per_processor(cards_of({2}, 0)) == 2);  // what can't be is taken for one
}
