// Plans of ranks that all do the same: made of that of rank 0, and proved by it. Both must be what
// comes of looking at each rank.
#include "proof/symmetric.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "plan/mutate.hpp"
#include "proof/expressions.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"
#include "support/plans.hpp"

using namespace hocket::plan;
using namespace hocket::proof;
using hocket::test::below;
using hocket::test::mutate;
using hocket::test::plans_of;
using hocket::test::Random;

namespace {

constexpr int mutations_made = 12'000;
constexpr std::string_view refused = "says nothing of the others'";

std::vector<const Algorithm*> symmetric_algorithms() {
  std::vector<const Algorithm*> all;
  for (const Algorithm& each : catalog()) {
    if (each.symmetry != Symmetry::none) all.push_back(&each);
  }
  return all;
}

std::string title(const Algorithm& algorithm, std::uint32_t size) {
  return std::string(name(algorithm.operation)) + " " + std::string(algorithm.name) + " of " +
         std::to_string(size);
}

std::vector<Plan> rotations(const Plan& first, Symmetry symmetry) {
  std::vector<Plan> plans(first.problem.size, first);
  for (std::uint32_t rank = 0; rank < plans.size(); ++rank) rotate(plans[rank], symmetry, rank);
  return plans;
}

/// By all ranks, as verify_symmetric does: not of plans that must go in another order than theirs.
hocket::Result<Proof> verify_all(const std::vector<Plan>& plans, const VerifyOptions& options) {
  auto proof = verify(plans, options);
  if (!proof.ok() || proof->messages == 0 || proof->rounds > 0) return proof;
  return hocket::Status(hocket::StatusCode::invalid_argument, "not in its own order");
}

/// So that what rank 0 does says nothing of the others.
bool is_refused(const hocket::Result<Proof>& proof) {
  return !proof.ok() && proof.status().what().find(refused) != std::string_view::npos;
}

std::string fault_of_symmetric(const Plan& plan, Symmetry symmetry = Symmetry::rotated) {
  const auto proof = verify_symmetric(plan, symmetry, {.in_place = true});
  return proof.ok() ? "none" : std::string(proof.status().what());
}

/// Rank 0's, with few steps of any kind, that fit together if all ranks have them rotated.
Plan draw(std::uint32_t size, Random& random) {
  PlanWriter plan("drawn", {.operation = Operation::all_reduce, .size = size}, 0, 1);
  const auto copy = [&] { return Range{Buffer::scratch, below(size, random), 1}; };
  const auto source = [&] { return below(2, random) == 0 ? Range{Buffer::in, 0, 1} : copy(); };
  for (std::uint32_t left = 1 + below(2 * size, random); left > 0; --left) {
    const std::uint32_t distance = 1 + below(size - 1, random);
    switch (below(3, random)) {
      case 0:
        plan.copy({Buffer::in, 0, 1}, copy());
        break;
      case 1:
        plan.send(plan.ahead(distance), source());
        plan.recv(plan.behind(distance), copy());
        break;
      default:
        plan.send(plan.ahead(distance), source());
        plan.recv_reduce(plan.behind(distance), source(), copy());
    }
  }
  plan.join();
  for (std::uint32_t left = below(size + 1, random); left > 0; --left) plan.reduce(copy(), copy());
  plan.copy(copy(), {Buffer::out, 0, 1});
  Plan drawn = plan.take();
  drawn.scratch_copies = size;
  return drawn;
}

}  // namespace

TEST_CASE("a rotated plan is what the algorithm would have written for the rank") {
  for (const Algorithm* algorithm : symmetric_algorithms()) {
    CHECK_FALSE(has_root(algorithm->operation));
    CHECK_FALSE(algorithm->is_canonical);
    for (std::uint32_t size = 2; size <= 40; ++size) {
      INFO(title(*algorithm, size));
      const Problem problem{.operation = algorithm->operation, .size = size};
      const auto plans = build_all(*algorithm, problem);
      PlanWriter writer(algorithm->name, problem, 0, algorithm->blocks_per_chunk(problem));
      for (const Plan& plan : plans) {
        writer.restart(plan.rank);
        algorithm->build(writer);
        const Plan written = writer.take();
        REQUIRE(plan.steps == written.steps);
        REQUIRE(plan.after == written.after);
        REQUIRE(plan.scratch_copies == written.scratch_copies);
        REQUIRE(build(*algorithm, problem, plan.rank).steps == written.steps);
      }
    }
  }
}

TEST_CASE("the proof by one rank tells what that by all ranks does") {
  Verifier verifier;
  for (const Algorithm* algorithm : symmetric_algorithms()) {
    for (std::uint32_t size = 1; size <= 64; ++size) {
      INFO(title(*algorithm, size));
      const Problem problem{.operation = algorithm->operation, .size = size};
      const auto plans = build_all(*algorithm, problem);
      for (const bool in_place : {false, true}) {
        const VerifyOptions options{.in_place = in_place, .canonical = false};
        REQUIRE(is_proved_by_one(*algorithm, options));
        const auto one = verifier.build_and_verify(*algorithm, problem, options);
        const auto all = verify(plans, options);
        REQUIRE(one.status().to_string() == "ok");
        REQUIRE(*one == *all);
        REQUIRE(check_promises(*algorithm, problem, *one).to_string() == "ok");
      }
    }
  }
}

TEST_CASE("of thousands of mutations in all ranks alike, one rank tells what all do") {
  std::uint64_t seed = 0;  // another one in each run; printed when something is wrong
  hocket::random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  const auto algorithms = symmetric_algorithms();
  int caught = 0;
  int done = 0;
  for (int i = 0; done < mutations_made; ++i) {
    Random random(seed + static_cast<std::uint64_t>(i));
    const Algorithm& algorithm = *algorithms[random() % algorithms.size()];
    const std::uint32_t size = 2 + below(9, random);
    Plan first = build(algorithm, {.operation = algorithm.operation, .size = size}, 0);
    const std::string what = mutate(first, random);
    if (what.empty()) continue;
    ++done;
    const VerifyOptions options{.in_place = i % 2 == 0, .canonical = false};
    INFO("seed " << seed + static_cast<std::uint64_t>(i) << ": " << title(algorithm, size) << ": "
                 << what);
    const auto one = verify_symmetric(first, algorithm.symmetry, options);
    if (is_refused(one)) {  // this one says nothing: another instead
      --done;
      continue;
    }
    const auto all = verify_all(rotations(first, algorithm.symmetry), options);
    INFO("by one: " << one.status().to_string() << ", by all: " << all.status().to_string());
    REQUIRE(one.ok() == all.ok());
    if (!one.ok()) ++caught;
    if (one.ok()) REQUIRE(*one == *all);
  }
  INFO(caught << " of " << mutations_made << " were caught");
  CHECK(caught > mutations_made / 10 * 8);
}

// The ring's steps: 0, 2, 4 send and 1, 3, 5 reduce; 6, 8, 10 send and 7, 9, 11 receive.
TEST_CASE("what is wrong with all ranks is said of rank 0") {
  const Plan ring = plans_of(Operation::all_reduce, "ring", 4).front();
  REQUIRE(fault_of_symmetric(ring) == "none");
  Plan plan = ring;
  plan.steps[3].kind = StepKind::recv;
  CHECK_THAT(fault_of_symmetric(plan),
             Catch::Contains("rank 0, out[0]: not every rank's contribution is in "
                             "it exactly once"));
  plan = ring;
  plan.steps[0].from_buffer = Buffer::out;
  CHECK_THAT(fault_of_symmetric(plan),
             Catch::Contains("rank 0, step 0 (send out[3] to 1): block 0 of 1 "
                             "blocks of out is undefined here"));
  plan = ring;
  plan.steps[1].peer = 2;
  CHECK_THAT(fault_of_symmetric(plan), Catch::Contains("messages do not fit together"));
  plan = ring;
  plan.steps[2].after_count = 0;
  CHECK_THAT(fault_of_symmetric(plan), Catch::Contains("it touches what step 1"));
  const Plan gather = plans_of(Operation::all_gather, "direct", 3).front();
  REQUIRE(fault_of_symmetric(gather) == "none");
  plan = gather;
  std::swap(plan.steps[1].to, plan.steps[3].to);
  CHECK_THAT(fault_of_symmetric(plan), Catch::Contains("it holds what belongs elsewhere"));
}

TEST_CASE("a plan that says nothing of the others' is refused") {
  const auto plans = plans_of(Operation::all_reduce, "ring", 4);
  CHECK_THAT(fault_of_symmetric(plans[1]), Catch::Contains(std::string(refused)));
  CHECK_THAT(fault_of_symmetric(plans[0], Symmetry::none), Catch::Contains(std::string(refused)));
  // Its blocks differ in size, and those of scratch would not go round with the others.
  CHECK_THAT(fault_of_symmetric(plans[0], Symmetry::rotated_but_scratch),
             Catch::Contains(std::string(refused)));
  CHECK_THAT(fault_of_symmetric(plans_of(Operation::all_reduce, "recursive_doubling", 4).front()),
             Catch::Contains(std::string(refused)));
  CHECK_THAT(fault_of_symmetric(plans_of(Operation::gather, "direct", 4).front()),
             Catch::Contains(std::string(refused)));
  CHECK_THAT(fault_of_symmetric(plans_of(Operation::barrier, "dissemination", 4).front()),
             Catch::Contains(std::string(refused)));
}

// One shot: 0 copies to scratch, 1 and 3 send, 2 and 4 receive; 5 and 6 reduce, and 7 copies to
// out.
TEST_CASE("what is behind the last message is the same on all ranks, or wrong") {
  const Plan plan = plans_of(Operation::all_reduce, "one_shot", 3).front();
  const auto fault = [&](auto change) {
    Plan changed = plan;
    change(changed);
    return fault_of_symmetric(changed, Symmetry::rotated_then_same);
  };
  REQUIRE(fault([](Plan&) {}) == "none");
  CHECK_THAT(fault([](Plan& all) { all.steps[5].from_buffer = Buffer::in; }),
             Catch::Contains("rank 0, step 5 (reduce scratch[0] = it op in[1])"));
  CHECK_THAT(fault([](Plan& all) {
               all.steps[5].from_buffer = Buffer::in;
               all.steps[5].from = 0;
             }),
             Catch::Contains("block 0 of 1 blocks of in is not the same on all ranks"));
  // What comes from rank 2 where that from rank 1 belongs, and the other way round.
  CHECK_THAT(fault([](Plan& all) { std::swap(all.steps[2].to, all.steps[4].to); }),
             Catch::Contains("block 0 of 1 blocks of scratch is not the same on all ranks"));
  CHECK_THAT(fault([](Plan& all) { all.steps[6].from = 1; }),
             Catch::Contains("not every rank's contribution is in it exactly once"));
  CHECK_THAT(fault([](Plan& all) { all.steps[7].from_buffer = Buffer::in; }),
             Catch::Contains("is not the same on all ranks"));
  // Step 5 no longer waits for step 2, which on rank 0 only step 6 has to; but on rank 1 it has to.
  Plan loose = plan;
  for (const auto& [step, awaited] : {std::pair{5U, std::vector<std::uint32_t>{0, 1, 3, 4}},
                                      std::pair{6U, std::vector<std::uint32_t>{2, 5}}}) {
    loose.steps[step].after_first = static_cast<std::uint32_t>(loose.after.size());
    loose.steps[step].after_count = static_cast<std::uint32_t>(awaited.size());
    loose.after.insert(loose.after.end(), awaited.begin(), awaited.end());
  }
  CHECK_THAT(fault_of_symmetric(loose, Symmetry::rotated_then_same),
             Catch::Contains(std::string(refused)));
  CHECK_THAT(
      std::string(verify(rotations(loose, Symmetry::rotated_then_same)).status().what()),
      Catch::Contains("rank 1, step 5 (reduce scratch[0] = it op scratch[1]): it touches what"));
  CHECK_THAT(fault([](Plan& all) { ++all.scratch_copies; }), Catch::Contains(std::string(refused)));
}

// Each rank would write into the copy that is its own, of which the sum is then made on rank 0
// alone.
TEST_CASE("a copy that is the same as rank 0's on one rank need not be so on all") {
  for (const std::uint32_t size : {2U, 4U}) {
    PlanWriter plan("wrong", {.operation = Operation::all_reduce, .size = size}, 0, 1);
    if (size == 2) plan.copy({Buffer::in, 0, 1}, {Buffer::scratch, 1, 1});
    plan.send(size - 1, {Buffer::in, 0, 1});
    plan.recv_reduce(1, {Buffer::in, 0, 1}, {Buffer::scratch, 0, 1});
    if (size == 4) {
      plan.send(2, {Buffer::scratch, 0, 1});
      plan.recv(2, {Buffer::scratch, 2, 1});
    }
    plan.join();
    if (size == 4) plan.reduce({Buffer::scratch, 2, 1}, {Buffer::scratch, 0, 1});
    plan.copy({Buffer::scratch, 0, 1}, {Buffer::out, 0, 1});
    Plan wrong = plan.take();
    wrong.scratch_copies = size;
    CHECK_THAT(fault_of_symmetric(wrong, Symmetry::rotated_then_same),
               Catch::Contains("blocks of scratch is not the same on all ranks"));
    CHECK_FALSE(verify(rotations(wrong, Symmetry::rotated_then_same)).ok());
  }
}

TEST_CASE("a plan behind whose last message nothing follows says nothing of the others'") {
  PlanWriter plan("wrong", {.operation = Operation::all_reduce, .size = 2}, 0, 1);
  plan.copy({Buffer::in, 0, 1}, {Buffer::scratch, 1, 1});
  plan.copy({Buffer::in, 0, 1}, {Buffer::out, 0, 1});
  CHECK_THAT(fault_of_symmetric(plan.take(), Symmetry::rotated_then_same),
             Catch::Contains(std::string(refused)));
}

TEST_CASE("what one rank proves of plans that are drawn by lot, all ranks do") {
  std::uint64_t seed = 0;  // another one in each run; printed when something is wrong
  hocket::random_bytes(std::as_writable_bytes(std::span(&seed, 1)));
  int proved = 0;
  for (int i = 0; i < 60'000; ++i) {
    Random random(seed + static_cast<std::uint64_t>(i));
    const std::uint32_t size = 2 + below(3, random);
    const Plan plan = draw(size, random);
    const auto one = verify_symmetric(plan, Symmetry::rotated_then_same, {.canonical = false});
    if (!one.ok()) continue;
    ++proved;
    INFO("seed " << seed + static_cast<std::uint64_t>(i) << ", " << size << " ranks");
    const auto all = verify(rotations(plan, Symmetry::rotated_then_same), {.canonical = false});
    REQUIRE(all.status().to_string() == "ok");
  }
  CHECK(proved > 10);
}

TEST_CASE("expressions are equal where trees are, whichever side is which") {
  Expressions all(4, 8);  // two blocks of each rank
  const auto leaf = [&](std::uint32_t rank) { return all.contribution(rank, 5); };
  const auto pair = [&](std::uint32_t one, std::uint32_t other) {
    return all.combine(leaf(one), leaf(other));
  };
  const auto sum = all.combine(pair(0, 1), pair(2, 3));
  CHECK(sum == all.combine(pair(3, 2), pair(1, 0)));
  CHECK(sum != all.combine(pair(0, 2), pair(1, 3)));
  CHECK(all.has_each_once(sum, 5));
  CHECK_FALSE(all.has_each_once(sum, 4));
  CHECK(all.has_each_once(all.turned(sum, 3), 3));
  CHECK_FALSE(all.has_each_once(all.combine(pair(0, 1), pair(1, 3)), 5));
  CHECK_FALSE(all.has_each_once(all.combine(sum, leaf(1)), 5));
  CHECK_FALSE(all.has_each_once(all.combine(pair(0, 1), leaf(3)), 5));
  // What is twice as large with each step is not looked at to its end.
  auto doubled = leaf(0);
  for (int i = 0; i < 100; ++i) doubled = all.combine(doubled, doubled);
  CHECK_FALSE(all.has_each_once(doubled, 5));
}
