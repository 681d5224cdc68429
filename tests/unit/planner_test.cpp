// Which ranks a communicator's plans talk to, where hosts have several.
#include "comm/planner.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "choose/network.hpp"
#include "choose/rules.hpp"
#include "choose/selector.hpp"
#include "comm/card.hpp"
#include "support/catch.hpp"

using namespace hocket::comm;
using hocket::Collective;
using hocket::CollectiveKind;
using hocket::DataType;
using hocket::choose::Selector;

namespace {

using Ranks = std::set<std::uint32_t>;

/// Whom rank 0 talks to in an operation on `elements` numbers.
Ranks peers(const std::vector<std::uint32_t>& hosts, const Collective& collective,
            const std::string& rules) {
  const auto network = hocket::choose::find_preset("ethernet-10g").value();
  const Selector selector(network, hocket::choose::parse_rules(rules).value());
  Planner planner({.rank = 0, .size = static_cast<std::uint32_t>(hosts.size())},
                  order_by_host(hosts), selector, 1,
                  [](const hocket::engine::Port&, std::uint32_t) { return hocket::ChannelId{0}; });
  const auto found = planner.find(collective);
  REQUIRE(found.ok());
  Ranks ranks;
  for (const auto& port : (*found)->program->ports()) ranks.insert(port.peer);
  REQUIRE((*found)->program->plan().rank == 0);
  return ranks;
}

Collective of(CollectiveKind kind, std::vector<float>& values, int root = 0) {
  return {.kind = kind,
          .in = values.data(),
          .out = values.data(),
          .type = DataType::f32,
          .count = values.size(),
          .root = root};
}

const std::vector<std::uint32_t> in_rows = {0, 0, 0, 1, 1, 1};
const std::vector<std::uint32_t> in_turns = {0, 1, 0, 1, 0, 1};

}  // namespace

TEST_CASE("two levels are those of the hosts, however the ranks are spread over them") {
  std::vector<float> values(1024);
  const std::string rules = "all_reduce=two_level,broadcast=two_level,reduce=two_level";
  const Collective sum = of(CollectiveKind::all_reduce, values);
  CHECK(peers(in_rows, sum, rules) == Ranks{1, 2, 3});
  CHECK(peers(in_turns, sum, rules) == Ranks{1, 2, 4});  // rank 1 is the first of the other host
  CHECK(peers(in_turns, of(CollectiveKind::broadcast, values, 4), rules) == Ranks{1, 2, 4});
}

TEST_CASE("what depends on the order of the ranks keeps it") {
  std::vector<float> values(1200);
  const auto canonical = [&](const std::vector<std::uint32_t>& hosts) {
    return peers(hosts, of(CollectiveKind::all_reduce, values), "all_reduce=canonical");
  };
  CHECK(canonical(in_turns) == canonical({0, 1, 2, 3, 4, 5}));
  const auto gathered = [&](const std::vector<std::uint32_t>& hosts) {
    std::vector<float> all(6 * values.size());
    Collective gather = of(CollectiveKind::all_gather, values);
    gather.out = all.data();
    return peers(hosts, gather, "all_gather=ring");
  };
  CHECK(gathered(in_turns) == Ranks{1, 5});
}
