// The all-reduce whose bits are the same at every size: on floats that add up to something else in
// any other order, and that no other order is taken for it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plan/layout.hpp"
#include "proof/schedule.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"
#include "support/plans.hpp"

using namespace hocket::plan;
using namespace hocket::proof;
using hocket::test::plans_of;
using Floats = std::vector<float>;

namespace {

constexpr std::uint64_t elements = 53;

const Algorithm& canonical = *find_algorithm(Operation::all_reduce, "canonical");

/// Large ones that nearly cancel each other, and small ones that come through or not.
float contributed(std::uint32_t number, std::uint64_t element) {
  const std::uint64_t mixed =
      (number + 1) * 0x9e3779b97f4a7c15 ^ (element + 1) * 0xbf58476d1ce4e5b9;
  const auto exponent = static_cast<int>((mixed >> 40) % 40) - 20;
  const float digits = 1.0F + static_cast<float>((mixed >> 11) % 8'388'608) / 8'388'608.0F;
  return (mixed >> 62) % 2 == 0 ? std::ldexp(digits, exponent) : -std::ldexp(digits, exponent);
}

/// Of so many neighbours from the first on, by the definition: halves of a power of two each.
float canonical_sum(std::uint32_t first, std::uint32_t count, std::uint64_t element) {
  if (count == 1) return contributed(first, element);
  const std::uint32_t half = std::bit_ceil(count) / 2;
  return canonical_sum(first, half, element) + canonical_sum(first + half, count - half, element);
}

/// The memory of one rank.
class Memory {
 public:
  explicit Memory(const Plan& plan) : plan_(plan), layout_(plan, sizes_) {
    for (const Buffer each : {Buffer::in, Buffer::out, Buffer::scratch}) {
      of(each).resize(layout_.size(each));
    }
    const Contributions own = contributions_of(plan.problem, plan.rank);
    for (std::size_t i = 0; i < of(Buffer::in).size(); ++i) {
      const auto vector = static_cast<std::uint32_t>(i / elements);
      of(Buffer::in)[i] = contributed(own.begin + vector, i % elements);
    }
  }

  [[nodiscard]] Floats& of(Buffer buffer) { return memory_[buffer]; }
  [[nodiscard]] Floats read(const Range& range) {
    Floats values;
    visit(range, [&](float& each) { values.push_back(each); });
    return values;
  }
  void write(const Range& range, const Floats& values) {
    std::size_t i = 0;
    visit(range, [&](float& each) { each = values.at(i++); });
  }

 private:
  void visit(const Range& range, const std::function<void(float&)>& use) {
    const std::uint32_t blocks = std::min(plan_.blocks(range.buffer), plan_.shape.vector_blocks());
    const std::uint32_t first = range.first / blocks * blocks;
    for (std::uint32_t i = 0; i < range.count; ++i) {
      const auto piece = layout_.elements(range.buffer, first + (range.first - first + i) % blocks);
      for (std::uint64_t at = piece.begin; at < piece.end; ++at) use(of(range.buffer)[at]);
    }
  }

  const Plan& plan_;
  std::vector<std::uint64_t> sizes_ = {elements};
  Layout layout_;
  std::map<Buffer, Floats> memory_;
};

/// What the ranks have in `out` at the end.
std::vector<Floats> results_of(const std::vector<Plan>& plans) {
  std::vector<Memory> memory(plans.begin(), plans.end());
  const auto schedule = make_schedule(plans);
  REQUIRE(schedule.ok());
  for (const Event& event : schedule->events) {
    const StepId end = event.is_message ? event.receive : event.step;
    const Step& from = plans[event.step.rank].steps[event.step.step];
    const Step& to = plans[end.rank].steps[end.step];
    Floats values = memory[event.step.rank].read(from.source());
    if (to.combines()) {
      const bool receives = to.kind == StepKind::recv_reduce;
      const Floats kept = memory[end.rank].read(receives ? to.source() : to.target());
      std::ranges::transform(kept, values, values.begin(), std::plus());
    }
    memory[end.rank].write(to.target(), values);
  }
  std::vector<Floats> results;
  for (Memory& each : memory) results.push_back(each.of(Buffer::out));
  return results;
}

bool have_same_bits(const Floats& one, const Floats& other) {
  return std::ranges::equal(one, other, {}, std::bit_cast<std::uint32_t, float>,
                            std::bit_cast<std::uint32_t, float>);
}

std::string fault_of(const std::vector<Plan>& plans) {
  return std::string(verify(plans).status().what());
}

}  // namespace

TEST_CASE("the bits are the same at every size, and others in another order") {
  for (const std::uint32_t contributions : {16U, 12U, 7U}) {
    Floats wanted;
    for (std::uint64_t i = 0; i < elements; ++i) {
      wanted.push_back(canonical_sum(0, contributions, i));
    }
    for (std::uint32_t size = 1; size <= contributions; ++size) {
      INFO(contributions << " contributions, " << size << " ranks");
      for (const Floats& result :
           results_of(build_all(canonical, {.size = size, .contributions = contributions}))) {
        CHECK(have_same_bits(result, wanted));
      }
    }
    CHECK(have_same_bits(
        results_of(plans_of(Operation::all_reduce, "canonical", contributions)).front(), wanted));
    CHECK_FALSE(have_same_bits(
        results_of(plans_of(Operation::all_reduce, "ring", contributions)).front(), wanted));
  }
}

TEST_CASE("only what combines in the canonical tree is said to") {
  for (std::uint32_t size = 3; size <= 20; ++size) {
    CHECK(verify(plans_of(Operation::all_reduce, "canonical", size))->is_canonical);
    CHECK_FALSE(verify(plans_of(Operation::all_reduce, "ring", size))->is_canonical);
  }
  const auto doubling = [](std::uint32_t size) {
    return verify(plans_of(Operation::all_reduce, "recursive_doubling", size));
  };
  CHECK(doubling(16)->is_canonical);  // partners are neighbours, and neighbours of neighbours
  CHECK_FALSE(doubling(17)->is_canonical);
  Algorithm liar = *find_algorithm(Operation::all_reduce, "ring");
  liar.is_canonical = true;
  const Problem problem{.size = 4};
  CHECK_THAT(std::string(check_promises(liar, problem, *verify(build_all(liar, problem))).what()),
             Catch::Contains("the tree in which it combines is not the canonical tree"));
}

TEST_CASE("contributions combined in another order are refused") {
  // One rank that adds up three or four in a row: of three, that is the canonical tree.
  for (const std::uint32_t contributions : {3U, 4U}) {
    PlanWriter plan("by hand", {.size = 1, .contributions = contributions}, 0, 1);
    plan.copy({Buffer::in, 0, 1}, {Buffer::out, 0, 1});
    for (std::uint32_t i = 1; i < contributions; ++i) {
      plan.reduce({Buffer::in, i, 1}, {Buffer::out, 0, 1});
    }
    const std::vector<Plan> plans = {plan.take()};
    if (contributions == 3) {
      CHECK(verify(plans)->is_canonical);
    } else {
      CHECK_THAT(fault_of(plans), Catch::Contains("rank 0, out[0]: the tree in which it was "
                                                  "combined is not the canonical tree"));
    }
  }
}

TEST_CASE("a contribution left out or taken twice is found") {
  const auto plans = build_all(canonical, {.size = 3, .contributions = 8});
  REQUIRE(verify(plans).ok());
  int changed = 0;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    for (std::size_t i = 0; i < plans[rank].steps.size(); ++i) {
      const Step& step = plans[rank].steps[i];
      auto others = plans;
      Step& other = others[rank].steps[i];
      if (step.combines()) {
        other.kind = step.receives() ? StepKind::recv : StepKind::copy;
      } else if (step.has_source() && step.from_buffer == Buffer::in) {
        other.from = (step.from + 3) % plans[rank].blocks(Buffer::in);  // of the next vector
      } else {
        continue;
      }
      INFO("rank " << rank << ", step " << i);
      CHECK_THAT(fault_of(others), Catch::Contains("contribution is in it exactly once") ||
                                       Catch::Contains("undefined") ||
                                       Catch::Contains("does not wait for it"));
      ++changed;
    }
  }
  CHECK(changed > 12);
}

TEST_CASE("a rank sends and keeps few partial sums, and one where all are powers of two") {
  for (std::uint32_t contributions = 1; contributions <= 70; ++contributions) {
    const auto levels = static_cast<std::uint32_t>(std::bit_width(contributions - 1));
    for (std::uint32_t size = 2; size <= contributions; size += 1 + size / 5) {
      INFO(contributions << " contributions, " << size << " ranks");
      const Problem problem{.size = size, .contributions = contributions};
      const Bound bound = bound_of(canonical, problem);
      CHECK(bound.blocks_sent <= (2 * levels + 1ULL) * (size - 1));
      if (std::has_single_bit(size) && std::has_single_bit(contributions)) {
        CHECK(bound.blocks_sent == 2 * (size - 1));
      }
      std::uint32_t most = 0;
      for (const Plan& plan : build_all(canonical, problem)) {
        most = std::max(most, plan.scratch_copies);
      }
      CHECK(most <= 2 * levels + 6);
    }
  }
}

TEST_CASE("contributions are of an all-reduce, at least one of each rank, and apart from out") {
  const auto fault = [](const Problem& problem) {
    Plan plan{.algorithm = "by hand", .problem = problem, .shape = shape_of(problem, 1)};
    return fault_of(std::vector<Plan>(problem.size, plan));
  };
  CHECK_THAT(fault({.size = 3, .contributions = 2}),
             Catch::Contains("a plan that can't be: for rank 0 of 3, root 0, 2 contributions"));
  CHECK_THAT(fault({.operation = Operation::reduce, .size = 1, .contributions = 2}),
             Catch::Contains("a plan that can't be"));
  CHECK_THAT(fault({.size = 1, .contributions = UINT32_MAX}),
             Catch::Contains("a plan that can't be"));
  CHECK_FALSE(can_be_in_place({.size = 3, .contributions = 3}));

  const Algorithm& ring = *find_algorithm(Operation::all_reduce, "ring");
  CHECK(can_solve(canonical, {.size = 3, .contributions = 3}));
  CHECK_FALSE(can_solve(canonical, {.size = 3, .contributions = 2}));
  CHECK_FALSE(can_solve(ring, {.size = 3, .contributions = 3}));
  CHECK_FALSE(can_solve(ring, {.operation = Operation::reduce, .size = 3}));
}

TEST_CASE("a range of one contribution goes on at the beginning of that one") {
  const Problem problem{.size = 2, .contributions = 4};
  std::vector<Plan> plans;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    PlanWriter plan("by hand", problem, rank, 3);
    const std::uint32_t peer = 1 - rank;
    plan.copy({Buffer::in, 1, 3}, {Buffer::scratch, 1, 3});
    plan.reduce({Buffer::in, 5, 3}, {Buffer::scratch, 2, 3});
    plan.send(peer, {Buffer::scratch, 1, 3});
    plan.recv_reduce(peer, {Buffer::scratch, 1, 3}, {Buffer::out, 1, 3});
    plans.push_back(plan.take());
  }
  CHECK(verify(plans).status().to_string() == "ok");
  CHECK(have_same_bits(results_of(plans).front(),
                       results_of(build_all(canonical, {.size = 1, .contributions = 4})).front()));
}
