#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "plan/catalog.hpp"
#include "proof/schedule.hpp"
#include "simulator/simulate.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;
using namespace hocket::sim;
using namespace hocket::choose;
using Catch::Matchers::Contains;

namespace {

constexpr double us = 1e-6;
constexpr double tick = 1e-12;

/// A byte takes a nanosecond, a message 12 us more than its bytes, and a reduction a tenth of them.
constexpr Network flat = {.latency = 10e-6,
                          .overhead = 1e-6,
                          .eager_bytes = 0,
                          .nic_bandwidth = 1e9,
                          .reduce_speed = 10e9,
                          .copy_speed = 10e9};

/// Plans written by hand: of a vector of one block, which all ranks have in `in` and `out`.
class HandWritten {
 public:
  explicit HandWritten(std::uint32_t size, std::uint32_t blocks = 1) {
    for (std::uint32_t rank = 0; rank < size; ++rank) {
      plans_.push_back({.algorithm = "test",
                        .problem = {.operation = Operation::all_reduce, .size = size},
                        .rank = rank,
                        .shape = {.chunks = 1, .blocks_per_chunk = blocks}});
    }
  }

  /// The step's number. It waits for those that are given.
  std::uint32_t add(std::uint32_t rank, Step step, const std::vector<std::uint32_t>& after = {}) {
    Plan& plan = plans_[rank];
    step.count = 1;
    step.after_first = static_cast<std::uint32_t>(plan.after.size());
    step.after_count = static_cast<std::uint32_t>(after.size());
    plan.after.insert(plan.after.end(), after.begin(), after.end());
    plan.steps.push_back(step);
    return static_cast<std::uint32_t>(plan.steps.size() - 1);
  }
  void message(std::uint32_t from, std::uint32_t to) {
    add(from, {.kind = StepKind::send, .peer = to});
    add(to, {.kind = StepKind::recv, .to_buffer = Buffer::out, .peer = from});
  }

  Timing run(const Network& network, std::uint64_t bytes) const {
    return simulate(plans_, network, {.elements = bytes, .keep_steps = true}).value();
  }
  double seconds(const Network& network, std::uint64_t bytes) const {
    return run(network, bytes).seconds;
  }
  const std::vector<Plan>& plans() const { return plans_; }

 private:
  std::vector<Plan> plans_;
};

Network with(Network network, double Network::*member, double value) {
  network.*member = value;
  return network;
}

Network with(Network network, std::uint32_t Network::*member, std::uint32_t value) {
  network.*member = value;
  return network;
}

void check_order(const std::vector<Plan>& plans, const Timing& timing) {
  for (const Plan& plan : plans) {
    const std::vector<StepTime>& times = timing.steps[plan.rank];
    bool is_right = true;
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      is_right &= times[i].begin <= times[i].end && times[i].end <= timing.rank_ends[plan.rank];
      for (const std::uint32_t each : plan.awaited(plan.steps[i])) {
        is_right &= times[each].end <= times[i].begin;
      }
    }
    CHECK(is_right);
  }
}

}  // namespace

TEST_CASE("a message takes the overheads, its bytes and the latency") {
  HandWritten world(2);
  world.message(0, 1);
  const Timing timing = world.run(flat, 1000);
  CHECK(timing.seconds == Approx(13 * us));
  CHECK(timing.rank_ends[0] == Approx(2 * us));  // its last byte has left
  CHECK(timing.messages == 1);
  CHECK(timing.bytes == 1000);
  CHECK(timing.busiest_link == "host 0, NIC 0, out");
  CHECK(timing.busiest_share == Approx(1.0 / 13));
  CHECK(timing.steps[1][0].begin == Approx(12 * us));
  CHECK(world.seconds(flat, 0) == Approx(12 * us));
}

TEST_CASE("a NIC lets a burst pass at once, and is busy no less for it") {
  HandWritten chain(3);  // the second message leaves another NIC than the first
  chain.message(0, 1);
  chain.add(1, {.kind = StepKind::send, .peer = 2}, {0});
  chain.add(2, {.kind = StepKind::recv, .to_buffer = Buffer::out, .peer = 1});
  const auto bursting = [](double bytes) { return with(flat, &Network::burst, bytes); };
  CHECK(chain.seconds(bursting(0), 4000) == Approx(2 * 12 * us + 8 * us).margin(tick));
  CHECK(chain.seconds(bursting(1000), 4000) == Approx(2 * 12 * us + 6 * us).margin(tick));
  CHECK(chain.seconds(bursting(64000), 4000) == Approx(2 * 12 * us).margin(tick));
  CHECK(chain.seconds(bursting(64000), 30000) == Approx(30 * us).margin(tick));  // repeated
}

TEST_CASE("a core does one thing after another") {
  HandWritten world(2);
  world.add(0, {.kind = StepKind::send, .peer = 1});
  world.add(1, {.kind = StepKind::recv_reduce, .to_buffer = Buffer::out, .peer = 0});
  CHECK(world.seconds(flat, 1000) == Approx(13.1 * us));
  world.add(1, {.kind = StepKind::copy, .to_buffer = Buffer::scratch});
  CHECK(world.seconds(flat, 1000) == Approx(13.1 * us));
  // It is still copying when the message is there.
  const Network slow = with(flat, &Network::copy_speed, 50e6);
  CHECK(world.seconds(slow, 1000) == Approx(21.1 * us));
  world.add(1, {.kind = StepKind::reduce, .to_buffer = Buffer::scratch}, {1});
  CHECK(world.seconds(slow, 1000) == Approx(21.2 * us));
}

TEST_CASE("ranks take turns on the processors that all share") {
  HandWritten world(8);  // four messages, of nobody twice
  for (std::uint32_t rank = 0; rank < 8; rank += 2) world.message(rank, rank + 1);
  const auto sharing = [](std::uint32_t processors) {
    return with(flat, &Network::processors, processors);
  };
  CHECK(world.seconds(flat, 0) == Approx(12 * us).margin(tick));
  CHECK(world.seconds(sharing(8), 0) == Approx(12 * us).margin(tick));
  CHECK(world.seconds(sharing(4), 0) == Approx(12 * us).margin(tick));
  CHECK(world.seconds(sharing(2), 0) == Approx(13 * us).margin(tick));  // two leave later
  CHECK(world.seconds(sharing(1), 0) == Approx(15 * us).margin(tick));
}

TEST_CASE(
    "a rank keeps a processor until it has nothing to do, and another one is there for others") {
  HandWritten world(4);
  world.message(0, 1);
  world.message(0, 3);
  world.message(2, 1);
  const auto begins = [&](std::uint32_t processors) {
    const Timing timing = world.run(with(flat, &Network::processors, processors), 0);
    return std::pair(timing.steps[0][1].begin, timing.steps[2][0].begin);
  };
  CHECK(begins(2).first == Approx(1 * us).margin(tick));
  CHECK(begins(2).second == Approx(0).margin(tick));
  CHECK(begins(1).first == Approx(1 * us).margin(tick));
  CHECK(begins(1).second == Approx(2 * us).margin(tick));
}

TEST_CASE("a processor is handed from rank to rank, and goes on with its own at once") {
  HandWritten world(4);
  for (const std::uint32_t to : {1U, 2U, 3U}) world.message(0, to);
  Network one = with(flat, &Network::processors, 1U);
  one.handover = 5 * us;
  const Timing timing = world.run(one, 0);
  CHECK(timing.steps[0][0].begin == Approx(5 * us).margin(tick));
  CHECK(timing.steps[0][1].begin == Approx(6 * us).margin(tick));
  CHECK(timing.steps[0][2].begin == Approx(7 * us).margin(tick));
  CHECK(timing.steps[1][0].begin == Approx(21 * us).margin(tick));  // 16 for it to come
  one.processors = 4;
  CHECK(world.seconds(one, 0) == world.seconds(flat, 0));  // each has one
}

TEST_CASE("where processors are shared, messages of one lane are sent and taken together") {
  HandWritten world(2);
  for (int i = 0; i < 3; ++i) world.message(0, 1);
  CHECK(world.seconds(flat, 0) == Approx(14 * us).margin(tick));  // a call each
  const Network one = with(flat, &Network::processors, 1U);
  CHECK(world.seconds(one, 0) == Approx(12 * us).margin(tick));
}

TEST_CASE("to acknowledge a message that is more than a packet can cost its receiver") {
  HandWritten world(2);
  world.message(0, 1);
  const Network answering = with(flat, &Network::acknowledge, 5 * us);
  CHECK(world.seconds(answering, 1448) == Approx(world.seconds(flat, 1448)).margin(tick));
  CHECK(world.seconds(answering, 1449) == Approx(world.seconds(flat, 1449) + 5 * us).margin(tick));
}

TEST_CASE("messages between hosts share what is on their way") {
  HandWritten world(4);
  world.message(0, 2);
  world.message(1, 3);
  constexpr std::uint64_t bytes = 1'000'000;
  const auto seconds = [&](const Network& network) { return world.seconds(network, bytes); };
  CHECK(seconds(flat) == Approx(1012 * us));

  const Network two_per_host = with(flat, &Network::ranks_per_host, 2);
  CHECK(seconds(two_per_host) == Approx(2012 * us));
  CHECK(seconds(with(two_per_host, &Network::nics_per_host, 2)) == Approx(1012 * us));
  CHECK(seconds(with(flat, &Network::background, 0.5)) == Approx(2012 * us));

  const Network tree = with(flat, &Network::hosts_per_leaf, 2);
  CHECK(seconds(tree) == Approx(1012 * us));
  const Network narrow = with(tree, &Network::leaf_oversubscription, 2);
  CHECK(seconds(narrow) == Approx(2012 * us));
  CHECK(world.run(narrow, bytes).busiest_link == "leaf switch 0, up");
  CHECK(seconds(with(narrow, &Network::background, 0.5)) == Approx(4012 * us));
  CHECK(seconds(with(tree, &Network::hop_latency, 5 * us)) == Approx(1017 * us));

  const Network pods = with(tree, &Network::leaves_per_pod, 1);
  CHECK(seconds(pods) == Approx(1012 * us));
  CHECK(seconds(with(pods, &Network::pod_oversubscription, 2)) == Approx(2012 * us));
  CHECK(seconds(with(pods, &Network::hop_latency, 5 * us)) == Approx(1022 * us));
}

TEST_CASE("messages inside a host do not meet the network") {
  HandWritten world(4);
  world.message(0, 1);
  world.message(2, 3);
  const Network host = {.ranks_per_host = 4,
                        .host_latency = 2e-6,
                        .host_overhead = 0.5e-6,
                        .host_bandwidth = 1e9,
                        .nic_bandwidth = 1};
  CHECK(world.seconds(host, 1000) == Approx(4 * us));
  CHECK(world.seconds(with(host, &Network::memory_bandwidth, 1e9), 1000) == Approx(5 * us));
  CHECK(world.run(host, 1000).busiest_link == "rank 0, out");
}

TEST_CASE("a large message waits for its receive, a small one does not") {
  HandWritten world(2);
  world.add(0, {.kind = StepKind::send, .peer = 1});
  world.add(1, {.kind = StepKind::copy, .to_buffer = Buffer::scratch});
  world.add(1, {.kind = StepKind::recv, .to_buffer = Buffer::scratch, .peer = 0}, {0});
  const Network slow = with(flat, &Network::copy_speed, 10e6);
  CHECK(world.seconds(slow, 1000) == Approx(113 * us));
  CHECK(world.seconds(with(slow, &Network::eager_bytes, 999), 1000) == Approx(113 * us));
  CHECK(world.seconds(with(slow, &Network::eager_bytes, 1000), 1000) == Approx(101 * us));
}

TEST_CASE("messages of a lane leave in the order of the plan") {
  HandWritten world(2);
  world.add(0, {.kind = StepKind::copy, .to_buffer = Buffer::scratch});
  world.add(0, {.kind = StepKind::send, .from_buffer = Buffer::scratch, .peer = 1}, {0});
  world.add(0, {.kind = StepKind::send, .peer = 1});
  world.add(1, {.kind = StepKind::recv, .to_buffer = Buffer::scratch, .peer = 0});
  world.add(1, {.kind = StepKind::recv, .to_buffer = Buffer::out, .peer = 0});
  const Timing timing = world.run(with(flat, &Network::copy_speed, 10e6), 1000);
  CHECK(timing.steps[0][1].begin == Approx(100 * us));
  CHECK(timing.steps[0][2].begin == Approx(101 * us));
  CHECK(timing.steps[1][1].end == Approx(114 * us));
}

TEST_CASE("a ring takes as long as its formula says") {
  const Algorithm& ring = *find_algorithm(Operation::all_reduce, "ring");
  for (const std::uint32_t size : {2U, 3U, 8U, 13U}) {
    const auto plans = build_all(ring, {.size = size});
    const double block = 5000e-9;
    const double rounds = 2.0 * (size - 1);
    const Timing timing = simulate(plans, flat, {.elements = 5000 * size}).value();
    CHECK(timing.seconds ==
          Approx(rounds * (12 * us + block) + rounds / 2 * block / 10).margin(tick));
  }
}

TEST_CASE("every algorithm comes to its end in order, every time the same") {
  for (const Algorithm& algorithm : catalog()) {
    for (const std::uint32_t size : {1U, 2U, 5U, 8U, 17U}) {
      const Problem problem = {.operation = algorithm.operation, .size = size, .pieces = 3};
      const auto plans = build_all(algorithm, problem);
      INFO(algorithm.name << " for " << name(algorithm.operation) << ", " << size << " ranks");
      Network network = presets().front().network;
      network.ranks_per_host = 3;
      network.hosts_per_leaf = 2;
      const SimulateOptions options = {.elements = 100'003, .keep_steps = true};
      const auto timing = simulate(plans, network, options);
      REQUIRE(timing.ok());
      check_order(plans, *timing);
      CHECK(timing->messages == hocket::proof::make_schedule(plans).value().messages);
      const auto again = simulate(plans, network, options);
      CHECK(again->rank_ends == timing->rank_ends);
      CHECK(again->busiest_link == timing->busiest_link);
    }
  }
}

TEST_CASE("thousands of ranks") {
  constexpr std::uint32_t size = 4096;
  const auto plans = build_all(*find_algorithm(Operation::all_reduce, "circulant"), {.size = size});
  const Timing timing = simulate(plans, flat, {.elements = 1000 * size}).value();
  CHECK(timing.messages == 24 * size);
  CHECK(timing.bytes == 2 * (size - 1) * std::uint64_t{size} * 1000);
  const double volume = 1000e-9 * (size - 1);
  CHECK(timing.seconds == Approx(24 * 12 * us + 2 * volume + volume / 10));
}

TEST_CASE("one of many ranks that are alike takes as long as each of all") {
  const Network one_host = {.ranks_per_host = 64, .eager_bytes = 4096};
  for (const Algorithm& algorithm : catalog()) {
    if (algorithm.symmetry == Symmetry::none) continue;
    for (const Network& network : {flat, with(flat, &Network::eager_bytes, 1e6), one_host}) {
      for (const std::uint32_t size : {2U, 3U, 8U, 13U, 64U}) {
        INFO(name(algorithm.operation) << ' ' << algorithm.name << ", " << size << " ranks");
        REQUIRE(are_alike(algorithm, size, network));
        const Problem problem = {.operation = algorithm.operation, .size = size};
        const auto plans = build_all(algorithm, problem);
        const SimulateOptions options = {.elements = 1000 * size};
        const Timing all = simulate(plans, network, options).value();
        const Timing one = simulate_alike(plans.front(), network, options).value();
        CHECK(one.seconds == Approx(all.seconds).epsilon(1e-9));
        CHECK(one.rank_ends.size() == size);
        CHECK(one.messages == all.messages);
        CHECK(one.bytes == all.bytes);
        CHECK(one.busiest_link == all.busiest_link);
      }
    }
  }
}

TEST_CASE("ranks are alike only where the network is the same to all") {
  const Algorithm& ring = *find_algorithm(Operation::all_reduce, "ring");
  CHECK(are_alike(ring, 64, flat));
  CHECK_FALSE(are_alike(ring, 64, {.ranks_per_host = 8}));
  CHECK(are_alike(ring, 64, {.ranks_per_host = 64}));
  CHECK_FALSE(are_alike(ring, 64, {.ranks_per_host = 64, .memory_bandwidth = 1e9}));
  CHECK_FALSE(are_alike(ring, 64, {.hosts_per_leaf = 8}));
  CHECK_FALSE(are_alike(ring, 64, {.processors = 2}));
  CHECK_FALSE(are_alike(*find_algorithm(Operation::broadcast, "chain"), 64, flat));
}

TEST_CASE("plans that can't run are refused") {
  HandWritten circle(2);
  for (const std::uint32_t rank : {0U, 1U}) {
    circle.add(rank, {.kind = StepKind::recv, .to_buffer = Buffer::out, .peer = 1 - rank});
    circle.add(rank, {.kind = StepKind::send, .from_buffer = Buffer::out, .peer = 1 - rank}, {0});
  }
  CHECK_THAT(simulate(circle.plans(), flat, {}).status().to_string(), Contains("in a circle"));

  HandWritten alone(2);
  alone.add(0, {.kind = StepKind::send, .peer = 1});
  CHECK_FALSE(simulate(alone.plans(), flat, {}).ok());
  CHECK_FALSE(simulate_alike(alone.plans().front(), flat, {}).ok());
  HandWritten deaf(3);
  deaf.add(0, {.kind = StepKind::recv, .to_buffer = Buffer::out, .peer = 1});
  CHECK_FALSE(simulate_alike(deaf.plans().front(), flat, {}).ok());
  deaf.add(0, {.kind = StepKind::send, .peer = 1});  // but that would come from rank 2
  CHECK_FALSE(simulate_alike(deaf.plans().front(), flat, {}).ok());
  CHECK_FALSE(simulate({}, flat, {}).ok());
}

TEST_CASE("networks that make no sense are refused") {
  const std::pair<Network, std::string> wrong[] = {
      {with(flat, &Network::latency, -1), "latency must be 0 or more"},
      {with(flat, &Network::ranks_per_host, 0), "ranks_per_host must be 1 or more"},
      {with(flat, &Network::background, 1), "background must be 0 or more, and less than 1"},
      {with(flat, &Network::leaf_oversubscription, 0), "oversubscription must be more than 0"},
      {with(flat, &Network::leaves_per_pod, 2), "hosts_per_leaf must be 1 or more"},
  };
  HandWritten world(2);
  world.message(0, 1);
  for (const auto& [network, why] : wrong) {
    CHECK_THAT(simulate(world.plans(), network, {}).status().to_string(), Contains(why));
  }
  for (const Preset& each : presets()) {
    CHECK(check_network(each.network).ok());
    CHECK(find_preset(each.name).value() == each.network);
  }
  CHECK_THAT(find_preset("ethernet-10").status().to_string(), Contains("ethernet-1g?"));
}
