#include "proof/describe.hpp"

#include "plan/catalog.hpp"
#include "support/catch.hpp"

using namespace hocket::plan;

namespace {

/// Of five blocks, and two copies of them in scratch.
Plan plan_of_five() {
  return {.problem = {.operation = Operation::all_reduce, .size = 5},
          .shape = {.chunks = 1, .blocks_per_chunk = 5},
          .scratch_copies = 2};
}

}  // namespace

TEST_CASE("ranges in words") {
  CHECK(describe(Range{Buffer::out, 3, 1}) == "out[3]");
  CHECK(describe(Range{Buffer::scratch, 4, 3}) == "scratch[4..6]");
}

TEST_CASE("ranges that go on at the beginning, in words") {
  const Plan plan = plan_of_five();
  CHECK(describe(plan, {Buffer::out, 4, 1}) == "out[4]");
  CHECK(describe(plan, {Buffer::out, 1, 4}) == "out[1..4]");
  CHECK(describe(plan, {Buffer::out, 3, 4}) == "out[3..1]");
  CHECK(describe(plan, {Buffer::out, 1, 5}) == "out[1..0]");
  CHECK(describe(plan, {Buffer::scratch, 4, 2}) == "scratch[4..0]");
  CHECK(describe(plan, {Buffer::scratch, 8, 4}) == "scratch[8..6]");  // of the second copy
}

TEST_CASE("steps that combine, in words") {
  Step step{.kind = StepKind::recv_reduce, .to_buffer = Buffer::out, .peer = 1, .count = 1};
  CHECK(describe(step) == "recv_reduce out[0] = in[0] op message from 1");
  step.is_reversed = true;
  CHECK(describe(step) == "recv_reduce out[0] = message op in[0] from 1");
  step.kind = StepKind::reduce;
  CHECK(describe(step) == "reduce out[0] = in[0] op it");
  step.is_reversed = false;
  CHECK(describe(step) == "reduce out[0] = it op in[0]");
}

TEST_CASE("ranges outside of their buffer, in words") {
  const Plan plan = plan_of_five();
  CHECK(describe(plan, {Buffer::in, 5, 2}) == "in[5..6]");
  CHECK(describe(plan, {Buffer::in, 1, 6}) == "in[1..6]");
}
