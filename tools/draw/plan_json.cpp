#include "draw/plan_json.hpp"

#include "program/json.hpp"
#include "proof/describe.hpp"

namespace hocket::draw {
namespace {

using program::Json;

/// Of the form; a change that a reader would notice makes it another.
constexpr int version = 1;

Json range_json(const plan::Range& range) {
  return {{"buffer", name(range.buffer)}, {"first", range.first}, {"count", range.count}};
}

Json step_json(const plan::Plan& plan, const plan::Step& step) {
  Json json = {{"kind", name(step.kind)}};
  if (step.sends() || step.receives()) {
    json["peer"] = step.peer;
    json["lane"] = +step.lane;
  }
  if (step.is_reversed) json["is_reversed"] = true;
  if (step.has_source()) json["from"] = range_json(step.source());
  if (step.has_target()) json["to"] = range_json(step.target());
  json["after"] = plan.awaited(step);
  return json;
}

Json plan_json(const plan::Plan& plan) {
  Json steps = Json::array();
  for (const plan::Step& step : plan.steps) steps.push_back(step_json(plan, step));
  return {{"rank", plan.rank}, {"scratch_copies", plan.scratch_copies}, {"steps", steps}};
}

}  // namespace

std::string plan_json(std::span<const plan::Plan> plans) {
  const plan::Plan& first = plans.front();
  Json document = {{"version", version},
                   {"operation", name(first.problem.operation)},
                   {"algorithm", first.algorithm},
                   {"size", first.problem.size},
                   {"root", first.problem.root},
                   {"pieces", first.problem.pieces},
                   {"ranks_per_host", first.problem.ranks_per_host},
                   {"contributions", first.problem.contributions},
                   {"chunks", first.shape.chunks},
                   {"blocks_per_chunk", first.shape.blocks_per_chunk},
                   {"plans", Json::array()}};
  for (const plan::Plan& plan : plans) document["plans"].push_back(plan_json(plan));
  return document.dump(1);
}

}  // namespace hocket::draw
