#include "steps.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "measure.hpp"
#include "plan_case.hpp"
#include "program/json.hpp"

namespace hocket::bench {
namespace {

struct StepsOptions {
  int rounds = 99;
  bool json = false;
};

constexpr PlanSubject subjects[] = {
    {plan::Operation::all_gather, "ring", 2},
    {plan::Operation::all_gather, "ring", 64},
    {plan::Operation::all_gather, "direct", 64},
    {plan::Operation::all_reduce, "ring", 64},
    {plan::Operation::all_reduce, "circulant", 1000},
    {plan::Operation::all_to_all, "pairwise", 128},
    {plan::Operation::barrier, "dissemination", 1000},
};

/// Of a step, in seconds.
struct Cost {
  double median = 0;
  double best = 0;
  double transport = 0;   // of the best one
  double arithmetic = 0;  // likewise
  [[nodiscard]] double engine() const noexcept { return best - transport - arithmetic; }
};

void print_head(const StepsOptions& options) {
  fmt::print(
      "The engine on a transport that moves nothing: plans of rank 0, an element in each chunk.\n"
      "{} rounds that take turns, the best of them. The transport's calls and the arithmetic are\n"
      "measured alone, and what is left is the engine's.\n\n"
      "                                    ns a step            of that by\n"
      "operation   algorithm      ranks  steps  best median  transport arithmetic  engine\n",
      options.rounds);
}

std::vector<Cost> measure_all(const std::vector<std::unique_ptr<PlanCase>>& cases, int rounds) {
  std::vector<std::function<void()>> works;
  for (const auto& each : cases) {
    works.emplace_back([it = each.get()] { it->run(); });
    works.emplace_back([it = each.get()] { it->call_transport(); });
    works.emplace_back([it = each.get()] { it->reduce_and_copy(); });
  }
  const std::vector<Measured> measured =
      hocket::bench::measure(works, {.rounds = rounds, .batch = std::chrono::milliseconds(1)});
  std::vector<Cost> costs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto steps = static_cast<double>(cases[i]->steps());
    const Measured& whole = measured[3 * i];
    costs.push_back({.median = whole.median / steps,
                     .best = whole.best / steps,
                     .transport = measured[3 * i + 1].best / steps,
                     .arithmetic = measured[3 * i + 2].best / steps});
  }
  return costs;
}

void print_steps(const StepsOptions& options) {
  std::vector<std::unique_ptr<PlanCase>> cases;
  for (const PlanSubject& subject : subjects) cases.push_back(std::make_unique<PlanCase>(subject));
  const std::vector<Cost> costs = measure_all(cases, options.rounds);

  program::Json document = {{"benchmark", "steps"},
                            {"version", version()},
                            {"rounds", options.rounds},
                            {"rows", program::Json::array()}};
  if (!options.json) print_head(options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto& [operation, algorithm, size] = subjects[i];
    const Cost& cost = costs[i];
    document["rows"].push_back({{"operation", plan::name(operation)},
                                {"algorithm", algorithm},
                                {"ranks", size},
                                {"steps", cases[i]->steps()},
                                {"ns_per_step", cost.best * 1e9},
                                {"ns_per_step_median", cost.median * 1e9},
                                {"ns_per_step_of_transport", cost.transport * 1e9},
                                {"ns_per_step_of_arithmetic", cost.arithmetic * 1e9},
                                {"ns_per_step_of_engine", cost.engine() * 1e9}});
    if (options.json) continue;
    fmt::print("{:<11} {:<14} {:>5} {:>6} {:>5.1f} {:>6.1f} {:>10.1f} {:>10.1f} {:>7.1f}\n",
               plan::name(operation), algorithm, size, cases[i]->steps(), cost.best * 1e9,
               cost.median * 1e9, cost.transport * 1e9, cost.arithmetic * 1e9, cost.engine() * 1e9);
  }
  if (options.json) fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_steps_command(program::Parser& program) {
  const auto options = std::make_shared<StepsOptions>();
  program::Parser& parser =
      program.add_command("steps", "What the engine takes for a step of a plan");
  parser.add_option("--rounds", &options->rounds, "Each measures all plans")
      .in_range(1, 1000)
      .with_default();
  parser.add_flag("--json", &options->json, "Write one JSON document");
  parser.on_run([options] {
    print_steps(*options);
    return program::exit_success;
  });
}

}  // namespace hocket::bench
