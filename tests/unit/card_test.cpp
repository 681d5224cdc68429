// What is known of hosts from the cards of all ranks.
#include "comm/card.hpp"

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/machine.hpp"
#include "store/hash_store.hpp"
#include "support/catch.hpp"

using namespace hocket::comm;
using hocket::Status;
using hocket::StatusCode;

namespace {

/// Of hosts with so many ranks each, in a row, and so many processors, up to 8.
std::vector<Card> cards_of(const std::vector<std::uint32_t>& hosts, std::uint32_t processors) {
  std::vector<Card> cards;
  const std::string bits(processors > 0 ? 1 : 0, static_cast<char>((1U << processors) - 1));
  for (const std::uint32_t ranks : hosts) {
    const std::string host = std::to_string(cards.size());
    for (std::uint32_t i = 0; i < ranks; ++i) {
      cards.push_back({.local_rank = i, .local_size = ranks, .host = host, .processors = bits});
    }
  }
  return cards;
}

/// Of ranks whose order is by host; else 1.
std::uint32_t ranks_per_host(const std::vector<std::uint32_t>& hosts) {
  const HostOrder order = order_by_host(hosts);
  return order.ranks.empty() ? order.ranks_per_host : 1;
}

}  // namespace

TEST_CASE("hosts have as many ranks each as all but the last have") {
  const auto in_world = [](const std::vector<Card>& cards) {
    return ranks_per_host(hosts_of(cards));
  };
  CHECK(in_world(cards_of({4}, 2)) == 4);
  CHECK(in_world(cards_of({4, 4, 3}, 2)) == 4);
  CHECK(in_world(cards_of({1, 1, 1}, 2)) == 1);
  CHECK(in_world(cards_of({3, 4}, 2)) == 1);
  CHECK(in_world(cards_of({2, 2, 1, 2}, 2)) == 1);
  std::vector<Card> swapped = cards_of({2, 2}, 2);
  std::swap(swapped[1], swapped[2]);
  CHECK(in_world(swapped) == 1);
}

TEST_CASE("groups have the hosts of their members") {
  const std::vector<std::uint32_t> hosts = hosts_of(cards_of({3, 2, 2}, 2));
  const auto of = [&](const std::vector<std::uint32_t>& members) {
    std::vector<std::uint32_t> theirs;
    for (const std::uint32_t each : members) theirs.push_back(hosts[each]);
    return ranks_per_host(theirs);
  };
  CHECK(of({0}) == 1);
  CHECK(of({0, 1, 3, 4, 5, 6}) == 2);
  CHECK(of({5, 6, 3, 4, 2}) == 2);
  CHECK(of({0, 1, 2}) == 3);
  CHECK(of({0, 1, 2, 3, 4}) == 3);
  CHECK(of({0, 3, 5}) == 1);
  CHECK(of({0, 3, 1, 4}) == 1);
  CHECK(of({0, 1, 3, 4, 2}) == 1);  // of two hosts, one begins again
}

TEST_CASE("ranks have an order by their hosts where all but one have as many") {
  const auto ranks = [](const std::vector<std::uint32_t>& hosts) {
    return order_by_host(hosts).ranks;
  };
  const auto per_host = [](const std::vector<std::uint32_t>& hosts) {
    return order_by_host(hosts).ranks_per_host;
  };
  using Ranks = std::vector<std::uint32_t>;
  CHECK(ranks({0, 0, 1, 1, 2}).empty());  // their own
  CHECK(per_host({0, 0, 1, 1, 2}) == 2);
  CHECK(ranks({0, 1, 0, 1}) == Ranks{0, 2, 1, 3});
  CHECK(per_host({0, 1, 0, 1}) == 2);
  CHECK(ranks({7, 3, 3, 7, 3, 7}) == Ranks{0, 3, 5, 1, 2, 4});
  CHECK(ranks({0, 1, 1, 2, 2}) == Ranks{1, 2, 3, 4, 0});  // who has fewer comes last
  CHECK(ranks({0, 0, 1, 2, 2}) == Ranks{0, 1, 3, 4, 2});
  CHECK(per_host({0, 0, 1, 2, 2}) == 2);
  for (const Ranks& none : {Ranks{0, 0, 0, 1, 1, 2, 3, 3}, Ranks{0, 1, 2}, Ranks{0}}) {
    CHECK(ranks(none).empty());
    CHECK(per_host(none) == 1);
  }
}

TEST_CASE("hosts are told by the launcher where ranks are consecutive, else by their names") {
  auto cards = cards_of({2, 2}, 2);
  for (Card& each : cards) each.host = "one";  // as with several hosts that a test plays on one
  CHECK(ranks_per_host(hosts_of(cards)) == 2);
  CHECK(hosts_of(cards)[0] != hosts_of(cards)[2]);
  std::swap(cards[1], cards[2]);
  CHECK(hosts_of(cards)[0] == hosts_of(cards)[3]);
}

TEST_CASE("hosts share memory if all ranks of each are in one domain") {
  const auto share = [](const std::vector<const char*>& domains) {
    auto cards = cards_of({2, 2}, 2);
    for (std::size_t i = 0; i < cards.size(); ++i) cards[i].memory_domain = domains[i];
    return share_memory(cards, hosts_of(cards));
  };
  CHECK(share({"a", "a", "b", "b"}));
  CHECK_FALSE(share({"a", "a", "b", "c"}));
  CHECK_FALSE(share({"a", "a", "", ""}));
  CHECK_FALSE(share({"a", "", "a", "a"}));
  const auto alone = cards_of({1, 1}, 2);
  CHECK_FALSE(share_memory(alone, hosts_of(alone)));
}

TEST_CASE("ranks share the processors that they all may run on") {
  CHECK(ranks_per_processor(cards_of({1, 1}, 8)) == 1);
  CHECK(ranks_per_processor(cards_of({2, 1}, 2)) == 1);
  CHECK(ranks_per_processor(cards_of({2, 3}, 2)) == 2);
  CHECK(ranks_per_processor(cards_of({8, 1}, 2)) == 4);
  CHECK(ranks_per_processor(cards_of({2}, 0)) == 1);  // they do not say
  const auto cards = cards_of({1, 3}, 2);
  CHECK(ranks_per_processor(cards, cards[0]) == 1);
  CHECK(ranks_per_processor(cards, cards[1]) == 2);
}

TEST_CASE("hosts of one machine share its processors") {
  auto cards = cards_of({1, 1, 1, 1}, 2);
  for (std::size_t i = 0; i < 3; ++i) cards[i].machine = "one";
  CHECK(ranks_per_processor(cards, cards[0]) == 2);
  CHECK(ranks_per_processor(cards, cards[3]) == 1);
  CHECK(ranks_per_processor(cards) == 1);  // what hosts send each other leaves them
  CHECK(shared_processors(cards) == 0);
  cards[3].machine = "one";
  CHECK(shared_processors(cards) == 2);
  cards.pop_back();
  cards.pop_back();
  CHECK(shared_processors(cards) == 0);  // one for each
}

TEST_CASE("ranks that are bound to processors of their own share none") {
  auto cards = cards_of({3}, 1);
  for (std::size_t i = 0; i < cards.size(); ++i)
    cards[i].processors = std::string(1, static_cast<char>(1 << i));
  CHECK(ranks_per_processor(cards) == 1);
  cards[1].processors = std::string(1, '\3');  // the first one's as well
  CHECK(ranks_per_processor(cards, cards[0]) == 2);
  CHECK(ranks_per_processor(cards, cards[1]) == 1);  // two ranks for two processors
  CHECK(ranks_per_processor(cards, cards[2]) == 1);
}

TEST_CASE("this process says where it runs") {
  CHECK_FALSE(own_processors().empty());
  CHECK_FALSE(hocket::own_machine().empty());
}

TEST_CASE("why a rank has no card is told to the others") {
  hocket::store::HashStore store;
  const Status none =
      Status(StatusCode::not_found, "no network").with_system_error(ENODEV).with_hint("plug it in");
  CHECK(exchange(none, 1, 2, store).status().what() == "no network");
  const Status told = exchange(cards_of({1}, 1).front(), 0, 2, store).status();
  CHECK(told.code() == StatusCode::not_found);
  CHECK(told.peer() == 1);
  CHECK_THAT(std::string(told.what()), Catch::Matchers::StartsWith("rank 1 (pid "));
  CHECK_THAT(std::string(told.what()), Catch::Matchers::EndsWith("can't take part: no network"));
  CHECK(told.hint() == "plug it in");
  CHECK(told.system_error() == ENODEV);
}
