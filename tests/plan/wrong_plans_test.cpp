// Plans that are wrong in one way each: the proof must fail, and say what is wrong where.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "proof/verify.hpp"
#include "support/catch.hpp"
#include "support/plans.hpp"

using hocket::plan::Buffer;
using hocket::plan::Operation;
using hocket::plan::Plan;
using hocket::plan::Step;
using hocket::plan::StepKind;
using hocket::test::plans_of;
using Plans = std::vector<Plan>;

namespace {

void set_before(Plan& plan, std::uint32_t step, const std::vector<std::uint32_t>& before) {
  plan.steps[step].after_first = static_cast<std::uint32_t>(plan.after.size());
  plan.steps[step].after_count = static_cast<std::uint32_t>(before.size());
  plan.after.insert(plan.after.end(), before.begin(), before.end());
}

/// Those that waited for the step wait for nothing in its place.
void remove_step(Plan& plan, std::uint32_t step) {
  for (std::uint32_t i = step + 1; i < plan.steps.size(); ++i) {
    std::vector<std::uint32_t> before;
    for (const std::uint32_t each : plan.awaited(plan.steps[i])) {
      if (each != step) before.push_back(each - (each > step ? 1 : 0));
    }
    set_before(plan, i, before);
  }
  plan.steps.erase(plan.steps.begin() + step);
}

Plans ring() { return plans_of(Operation::all_reduce, "ring", 4); }
Plans doubling() { return plans_of(Operation::all_reduce, "recursive_doubling", 4); }
Plans gather() { return plans_of(Operation::all_gather, "direct", 3); }

std::string fault_proved(const Plans& plans) {
  const auto proof = hocket::proof::verify(plans);
  return proof.ok() ? "none" : std::string(proof.status().what());
}

struct Wrong {
  std::string name;
  Plans plans;
  std::function<void(Plans&)> spoil;
  std::string fault;  // a part of what is said
};

}  // namespace

// The ring's steps of each rank: 0, 2, 4 send and 1, 3, 5 reduce; 6, 8, 10 send and 7, 9, 11
// receive.
TEST_CASE("each wrong plan is caught, and the fault is named") {
  const std::vector<Wrong> wrongs = {
      {"no plans", {}, [](Plans&) {}, "no plans"},
      {"a plan is missing", ring(), [](Plans& all) { all.pop_back(); }, "for another problem"},
      {"plans in another order", ring(), [](Plans& all) { std::swap(all[0], all[1]); },
       "plan 0 of 4 is for rank 1 of 4"},
      {"one is of another problem", ring(), [](Plans& all) { all[2].problem.pieces = 2; },
       "for another problem"},
      {"an operation that does not exist", ring(),
       [](Plans& all) {
         for (Plan& each : all) each.problem.operation = static_cast<Operation>(99);
       },
       "a plan that can't be"},
      {"a root that does not exist", ring(),
       [](Plans& all) {
         for (Plan& each : all) each.problem.root = 4;
       },
       "a plan that can't be: for rank 0 of 4, root 4"},
      {"another number of chunks than the operation has", ring(),
       [](Plans& all) {
         for (Plan& each : all) each.shape = {.chunks = 4, .blocks_per_chunk = 1};
       },
       "4 chunks of 1 blocks"},
      {"no blocks at all", ring(),
       [](Plans& all) {
         for (Plan& each : all) each.shape.blocks_per_chunk = 0;
       },
       "1 chunks of 0 blocks"},
      {"more scratch than there can be", ring(),
       [](Plans& all) { all[0].scratch_copies = 1U << 24; }, "16777216 copies"},
      {"more blocks on all ranks together than a proof takes", ring(),
       [](Plans& all) {
         for (Plan& each : all) each.scratch_copies = 1U << 23;
       },
       "these plans have 134217760 blocks in all buffers, and a proof takes 134217728"},
      {"blocks whose number is beyond all numbers", ring(),
       [](Plans& all) {
         for (Plan& each : all) {
           each.shape = {.chunks = UINT32_MAX, .blocks_per_chunk = UINT32_MAX};
           each.scratch_copies = UINT32_MAX;
         }
       },
       "a plan that can't be"},
      {"steps that touch more blocks than a proof takes", ring(),
       [](Plans& all) { all[1].steps[4].count = UINT32_MAX; },
       "blocks that steps touch, and a proof takes 536870912"},
      {"a step that writes a part of what it reads, shifted",
       plans_of(Operation::all_gather, "ring", 3),
       [](Plans& all) {
         all[0].steps.push_back({.kind = StepKind::copy,
                                 .from_buffer = Buffer::out,
                                 .to_buffer = Buffer::out,
                                 .from = 0,
                                 .to = 1,
                                 .count = 2});
       },
       "it writes a part of what it reads, at another place"},
      {"a missing send", ring(), [](Plans& all) { remove_step(all[1], 10); },
       "rank 2, step 11 (recv out[3] from 1): rank 1 has no send for it"},
      {"a missing receive", ring(), [](Plans& all) { remove_step(all[2], 11); },
       "rank 1, step 10 (send out[3] to 2): rank 2 has no receive for it"},
      {"a missing copy", gather(), [](Plans& all) { remove_step(all[1], 4); },
       "rank 1, out[1]: it is undefined at the end"},
      {"a block that nobody fills", plans_of(Operation::broadcast, "chain", 3),
       [](Plans& all) { remove_step(all[0], 1); }, "rank 0, out[0]: it is undefined at the end"},
      {"two receives exchanged", ring(),
       [](Plans& all) { std::swap(all[1].steps[9].to, all[1].steps[11].to); },
       "rank 1, step 9 (recv out[2] from 0): it touches what"},
      {"another order of reduction", plans_of(Operation::all_reduce, "one_shot", 3),
       [](Plans& all) { std::swap(all[1].steps[5].from, all[1].steps[6].from); },
       "rank 1, out[0]: it was combined in another order than on rank 0"},
      {"a block past the end", ring(), [](Plans& all) { all[0].steps[11].to = 4; },
       "rank 0, step 11 (recv out[4] from 3): out[4] is outside of out, which has 4 blocks here"},
      {"too many blocks", ring(), [](Plans& all) { all[0].steps[11].count = 5; },
       "is outside of out, which has 4 blocks here"},
      {"no blocks", ring(), [](Plans& all) { all[0].steps[0].count = 0; }, "is outside of in"},
      {"scratch that is not there", ring(),
       [](Plans& all) { all[3].steps[11].to_buffer = Buffer::scratch; },
       "is outside of scratch, which has 0 blocks here"},
      {"a message of another size", plans_of(Operation::all_gather, "ring", 3),
       [](Plans& all) {
         all[0].steps[2].count = 2;
         set_before(all[0], 2, {0, 1});
         set_before(all[0], 4, {2});
       },
       "rank 1, step 3 (recv out[2] from 0): what comes is of another size: rank 0, step 2"},
      {"blocks of another size", ring(),
       [](Plans& all) {
         all[0].steps[0].from = 0;
         all[0].steps[0].kind = StepKind::copy;
         all[0].steps[0].to = 1;
         all[0].steps[0].to_buffer = Buffer::out;
       },
       "its blocks are of other sizes than those they go to"},
      {"`in` is written", gather(),
       [](Plans& all) {
         all[0].steps[2] = {.kind = StepKind::recv, .to_buffer = Buffer::in, .peer = 2, .count = 1};
       },
       "`in` is the caller's and never written"},
      {"a rank that does not exist", ring(), [](Plans& all) { all[0].steps[0].peer = 4; },
       "there are 4 ranks"},
      {"a message to itself", ring(), [](Plans& all) { all[1].steps[0].peer = 1; },
       "a rank sends nothing to itself"},
      {"a step of no kind", ring(),
       [](Plans& all) { all[1].steps[0].kind = static_cast<StepKind>(9); },
       "it is of no known kind"},
      {"a wait for a later step", ring(), [](Plans& all) { set_before(all[1], 3, {5}); },
       "rank 1, step 3 (recv_reduce out[2] = in[2] op message from 0): it waits for step 5, which "
       "is "
       "no earlier"},
      {"a wait that is cut off", ring(), [](Plans& all) { all[1].steps[3].after_first = 1 << 20; },
       "the list of steps it waits for is cut off"},
      {"a send that does not wait for what it sends", ring(),
       [](Plans& all) { set_before(all[2], 4, {}); },
       "rank 2, step 4 (send out[3] to 3): it touches what step 3 (recv_reduce out[3] = in[3] op "
       "message from 1) does, and does not wait for it"},
      {"a receive into what is being sent", gather(),
       [](Plans& all) {
         all[0].steps[0].from_buffer = Buffer::out;
         all[0].steps[0].from = 1;
         all[0].steps[0].count = 1;
       },
       "it touches what step 0"},
      {"a circle: all send before they receive, where they may not", doubling(),
       [](Plans& all) {
         for (Plan& plan : all) set_before(plan, 1, {0});
       },
       "steps wait for each other in a cycle: rank 0, step 0 (send in[0] to 1)"},
      {"a double contribution", plans_of(Operation::reduce, "binomial", 4),
       [](Plans& all) {
         all[0].steps.push_back({.kind = StepKind::reduce,
                                 .from_buffer = Buffer::in,
                                 .to_buffer = Buffer::out,
                                 .count = 1});
         set_before(all[0], 2, {1});
       },
       "rank 0, out[0]: not every rank's contribution is in it exactly once"},
      {"a missing contribution", ring(), [](Plans& all) { all[0].steps[3].kind = StepKind::recv; },
       "not every rank's contribution is in it exactly once"},
      {"an undefined read", ring(), [](Plans& all) { all[0].steps[0].from_buffer = Buffer::out; },
       "rank 0, step 0 (send out[3] to 1): block 0 of 1 blocks of out is undefined here"},
      {"a gather with two blocks exchanged", gather(),
       [](Plans& all) { std::swap(all[2].steps[1].to, all[2].steps[3].to); },
       "rank 2, out[0]: it holds what belongs elsewhere"},
      {"a scan that leaves out the rank's own", plans_of(Operation::scan, "chain", 3),
       [](Plans& all) { all[1].steps[0].kind = StepKind::recv; },
       "rank 1, out[0]: not each contribution that belongs here is in it exactly once"},
      {"a scan of all ranks", plans_of(Operation::all_reduce, "recursive_doubling", 4),
       [](Plans& all) {
         for (Plan& plan : all) plan.problem.operation = Operation::scan;
       },
       "rank 0, out[0]: not each contribution that belongs here is in it exactly once"},
      {"an exclusive scan that tells rank 0", plans_of(Operation::exscan, "chain", 3),
       [](Plans& all) {
         all[0].steps.push_back({.kind = StepKind::copy, .to_buffer = Buffer::out, .count = 1});
       },
       "out[0] is outside of out, which has 0 blocks here"},
      {"a barrier that does not wait for all", plans_of(Operation::barrier, "dissemination", 4),
       [](Plans& all) { all[1].steps[3].kind = StepKind::recv; }, "rank 1 goes on before rank"},
  };
  for (Wrong wrong : wrongs) {
    INFO(wrong.name);
    if (!wrong.plans.empty()) REQUIRE(fault_proved(wrong.plans) == "none");
    wrong.spoil(wrong.plans);
    CHECK_THAT(fault_proved(wrong.plans), Catch::Contains(wrong.fault));
  }
}
