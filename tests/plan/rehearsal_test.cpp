// That a rehearsal fails where it must, and that proofs see what only some worlds would.
#include "proof/rehearsal.hpp"

#include <functional>
#include <string>
#include <vector>

#include "plan/writer.hpp"
#include "proof/verify.hpp"
#include "support/catch.hpp"
#include "support/plans.hpp"

using namespace hocket::plan;
using namespace hocket::proof;
using hocket::test::plans_of;

namespace {

std::string fault_rehearsed(const std::vector<Plan>& plans) {
  const auto sizes = even_sizes(plans.front().problem, 4);
  return std::string(rehearse(plans, {.sizes = sizes}).what());
}

std::vector<Plan> written(const Problem& problem, const std::function<void(PlanWriter&)>& write) {
  std::vector<Plan> plans;
  for (std::uint32_t rank = 0; rank < problem.size; ++rank) {
    PlanWriter plan("by hand", problem, rank, 1);
    write(plan);
    plans.push_back(plan.take());
  }
  return plans;
}

}  // namespace

TEST_CASE("a rehearsal finds a wrong result, a world that is stuck and a message of another size") {
  auto plans = plans_of(Operation::all_reduce, "ring", 3);
  CHECK(fault_rehearsed(plans).empty());
  plans[1].steps[3].kind = StepKind::recv;
  CHECK_THAT(fault_rehearsed(plans), Catch::Contains("element 2 of out is wrong"));

  plans = plans_of(Operation::all_reduce, "ring", 3);
  plans[1].steps.resize(plans[1].steps.size() - 2);
  CHECK_THAT(fault_rehearsed(plans), Catch::Contains("nothing can go on, not even rank 2, step 7"));

  plans = plans_of(Operation::all_reduce, "ring", 3);
  plans[0].steps[0].from = 0;  // of 4 elements in 3 blocks, the first has 2
  CHECK_THAT(fault_rehearsed(plans), Catch::Contains("what comes has another number of elements"));
}

TEST_CASE("a plan that is right only where in and out are apart is found in place") {
  const auto plans = written({.operation = Operation::all_reduce, .size = 2}, [](PlanWriter& plan) {
    plan.copy({Buffer::in, 0, 1}, {Buffer::scratch, 0, 1});
    plan.send(plan.ahead(1), {Buffer::scratch, 0, 1});
    plan.recv(plan.ahead(1), {Buffer::out, 0, 1});
    plan.reduce({Buffer::in, 0, 1}, {Buffer::out, 0, 1});
  });
  CHECK(verify(plans).status().to_string() == "ok");
  CHECK_THAT(std::string(verify(plans, {.in_place = true}).status().what()),
             Catch::Contains("was changed as out, which may be the same memory"));
}

TEST_CASE("a contribution that is there 2^64 times more than once is found") {
  const auto plans = written({.operation = Operation::reduce, .size = 2}, [](PlanWriter& plan) {
    if (plan.rank() == 1) return plan.send(0, {Buffer::in, 0, 1});
    plan.recv_reduce(1, {Buffer::in, 0, 1}, {Buffer::scratch, 0, 1});
    plan.copy({Buffer::scratch, 0, 1}, {Buffer::out, 0, 1});
    for (int i = 0; i < 64; ++i) plan.reduce({Buffer::scratch, 0, 1}, {Buffer::scratch, 0, 1});
    plan.reduce({Buffer::scratch, 0, 1}, {Buffer::out, 0, 1});
  });
  CHECK_THAT(std::string(verify(plans).status().what()),
             Catch::Contains("not every rank's contribution is in it exactly once"));
}

TEST_CASE("plans whose own order is none in which messages can go have no bound") {
  const Problem problem{.operation = Operation::broadcast, .size = 3, .ranks_per_host = 2};
  const auto plans = written(problem, [](PlanWriter& plan) {
    if (plan.rank() == 0) {
      plan.send(2, {Buffer::in, 0, 1});
      plan.send(1, {Buffer::in, 0, 1}, 0);
      plan.send(1, {Buffer::in, 0, 1}, 1);
      return plan.copy({Buffer::in, 0, 1}, {Buffer::out, 0, 1});
    }
    if (plan.rank() == 1) plan.recv(0, {Buffer::scratch, 0, 1}, 1);
    plan.recv(0, {Buffer::out, 0, 1}, 0);
  });
  const auto proof = verify(plans);
  REQUIRE(proof.status().to_string() == "ok");  // each lane for itself is in order
  CHECK(proof->rounds == 0);
  const Algorithm& loose = *find_algorithm(Operation::broadcast, "two_level");
  REQUIRE_FALSE(bound_of(loose, problem).rounds_are_exact);
  CHECK_THAT(std::string(check_promises(loose, problem, *proof).what()),
             Catch::Contains("the order of the plans is none"));
}

TEST_CASE("a gather through one place in scratch does not allow chunks of different sizes") {
  const auto plans = written({.operation = Operation::gather, .size = 3}, [](PlanWriter& plan) {
    if (plan.rank() > 0) {
      plan.copy({Buffer::in, 0, 1}, {Buffer::scratch, 0, 1});
      return plan.send(0, {Buffer::scratch, 0, 1});
    }
    plan.copy({Buffer::in, 0, 1}, {Buffer::out, 0, 1});
    for (const std::uint32_t other : {1U, 2U}) plan.recv(other, {Buffer::out, other, 1});
  });
  const auto proof = verify(plans);
  REQUIRE(proof.status().to_string() == "ok");
  CHECK_FALSE(proof->allows_uneven);
  CHECK(verify(plans_of(Operation::gather, "direct", 3))->allows_uneven);
}
