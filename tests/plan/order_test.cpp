// Plans run in their own order, and in any other: both must tell the same.
#include <cstdint>
#include <string>
#include <vector>

#include "plan/writer.hpp"
#include "proof/ordered_run.hpp"
#include "proof/schedule.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"
#include "support/plans.hpp"

using namespace hocket::plan;
using namespace hocket::proof;
using hocket::test::plans_of;

namespace {

/// Each event must be behind all that its steps wait for.
std::size_t check_order(const std::vector<Plan>& plans, std::span<const Event> events) {
  std::vector<std::vector<bool>> over;
  for (const Plan& plan : plans) over.emplace_back(plan.steps.size());
  std::size_t steps = 0;
  const auto check = [&](const StepId& id) {
    const Plan& plan = plans[id.rank];
    for (const std::uint32_t each : plan.awaited(plan.steps[id.step])) {
      REQUIRE(over[id.rank][each]);
    }
    REQUIRE_FALSE(over[id.rank][id.step]);
    ++steps;
  };
  for (const Event& event : events) {
    check(event.step);
    if (event.is_message) check(event.receive);
    over[event.step.rank][event.step.step] = true;
    over[event.last().rank][event.last().step] = true;
  }
  return steps;
}

}  // namespace

TEST_CASE("every step of every plan happens once, behind all that it waits for") {
  OrderedRun run;  // of one world after the other
  for (const Algorithm& algorithm : catalog()) {
    for (const std::uint32_t size : {9U, 2U, 33U}) {
      INFO(name(algorithm.operation) << " " << algorithm.name << " of " << size);
      const auto plans = build_all(algorithm, {.operation = algorithm.operation, .size = size});
      std::vector<Event> events;
      run.start(plans);
      for (auto some = run.next(); !some.empty(); some = run.next()) {
        events.insert(events.end(), some.begin(), some.end());
      }
      CHECK(run.is_over());
      std::size_t steps = 0;
      for (const Plan& plan : plans) steps += plan.steps.size();
      CHECK(check_order(plans, events) == steps);
    }
  }
}

TEST_CASE("a run in order stops where messages do not fit together") {
  auto plans = plans_of(Operation::all_gather, "ring", 3);
  plans[1].steps.resize(3);  // the last receive, and the copy behind it
  OrderedRun run;
  run.start(plans);
  while (!run.next().empty()) continue;
  CHECK_FALSE(run.is_over());
  CHECK_FALSE(make_schedule(plans).ok());
}

TEST_CASE("plans that can go in another order only are proved too") {
  std::vector<Plan> plans;
  for (const std::uint32_t rank : {0U, 1U}) {
    PlanWriter plan("by hand", {.operation = Operation::all_gather, .size = 2}, rank, 1);
    plan.copy({Buffer::in, 0, 1}, {Buffer::out, rank, 1});
    if (rank == 0) {  // offers on lanes 0 and 1, of which the other takes the second one first
      plan.send(1, {Buffer::in, 0, 1}, 0);
      plan.send(1, {Buffer::in, 0, 1}, 1);
      plan.recv(1, {Buffer::out, 1, 1});
    } else {
      plan.recv(0, {Buffer::scratch, 0, 1}, 1);
      plan.recv(0, {Buffer::out, 0, 1}, 0);
      plan.send(0, {Buffer::in, 0, 1});
    }
    plans.push_back(plan.take());
  }
  const auto schedule = make_schedule(plans);
  REQUIRE(schedule.ok());
  CHECK(schedule->rounds == 0);
  CHECK(check_order(plans, schedule->events) == 8);
  const auto proof = verify(plans);
  REQUIRE(proof.status().to_string() == "ok");
  CHECK(proof->messages == 3);
}

TEST_CASE("one proof after the other is as good as each for itself") {
  Verifier verifier;
  const auto right = plans_of(Operation::all_reduce, "ring", 5);
  auto wrong = right;
  wrong[2].steps[5].kind = StepKind::recv;
  for (int i = 0; i < 3; ++i) {
    CHECK(verifier.verify(right, {.in_place = true}).status().to_string() == "ok");
    CHECK_THAT(std::string(verifier.verify(wrong).status().what()),
               Catch::Contains("not every rank's contribution is in it exactly once"));
    const auto barrier = plans_of(Operation::barrier, "dissemination", 7);
    CHECK(verifier.verify(barrier).status().to_string() == "ok");
  }
}
